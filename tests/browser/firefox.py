"""A Firefox driven by WebDriver BiDi, the protocol that it speaks itself: no driver program is needed.

Without a screen it runs on a virtual one (Xvfb), because a headless Firefox has no WebGL without a graphics
card.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

PREFERENCES = """
user_pref("webgl.force-enabled", true);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "");
"""


def find_firefox() -> str | None:
    return os.environ.get("RELSCOPE_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")


def without_screen() -> bool:
    return not os.environ.get("DISPLAY") and shutil.which("Xvfb") is None


class Firefox:
    """One window. `errors` holds what its scripts threw."""

    def __init__(self, path: str, profile: Path, width: int = 1440, height: int = 900) -> None:
        profile.mkdir(parents=True, exist_ok=True)
        (profile / "user.js").write_text(PREFERENCES)
        self._screen, display = None, os.environ.get("DISPLAY")
        if not display:
            screen = ["Xvfb", "-displayfd", "1", "-screen", "0", f"{width}x{height}x24"]
            self._screen = subprocess.Popen(
                screen, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            display = f":{self._screen.stdout.readline().strip()}"
        command = [path, "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
        command += [f"--width={width}", f"--height={height}"]
        environment = {**os.environ, "DISPLAY": display}
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        for line in self._process.stderr:
            if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", line):
                break
        else:
            raise RuntimeError("Firefox ended before it listened")
        self._socket = connect(f"{found[1]}/session", max_size=None)
        self._number = 0
        self.errors: list[str] = []
        self._ask("session.new", capabilities={})
        self._ask("session.subscribe", events=["log.entryAdded"])
        self._window = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def _ask(self, method: str, **parameters: Any) -> dict:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=120))
            if message.get("method") == "log.entryAdded" and message["params"].get("type") == "javascript":
                self.errors.append(str(message["params"].get("text")))
            if message.get("id") == self._number:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['message']}")
                return message["result"]

    def open(self, url: str) -> None:
        self._ask("browsingContext.navigate", context=self._window, url=url, wait="complete")

    def evaluate(self, expression: str) -> Any:
        result = self._ask(
            "script.evaluate",
            expression=expression,
            target={"context": self._window},
            awaitPromise=True,
            resultOwnership="none",
        )
        if result["type"] == "exception":
            raise RuntimeError(result["exceptionDetails"]["text"])
        return result["result"].get("value")

    def wait_for(self, condition: str, seconds: int = 120) -> None:
        self.evaluate(f"""new Promise((done, fail) => {{
              const until = performance.now() + {seconds * 1000};
              const late = () => (performance.now() > until ? fail("not true in time") : setTimeout(look, 50));
              const look = () => (({condition}) ? done(true) : late());
              look();
            }})""")

    def drag(self, points: list[tuple[float, float]]) -> None:
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 100} for x, y in points]
        actions = [
            moves[0],
            {"type": "pointerDown", "button": 0},
            *moves[1:],
            {"type": "pointerUp", "button": 0},
        ]
        pointer = {
            "type": "pointer",
            "id": "mouse",
            "parameters": {"pointerType": "mouse"},
            "actions": actions,
        }
        self._ask("input.performActions", context=self._window, actions=[pointer])

    def screenshot(self) -> str:
        return self._ask("browsingContext.captureScreenshot", context=self._window)["data"]

    def close(self) -> None:
        self._socket.close()
        self._process.terminate()
        self._process.wait(30)
        if self._screen:
            self._screen.terminate()
            self._screen.wait(30)
