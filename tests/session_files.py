"""The text of a session file, as the app writes it, but without the selection of the panes."""

import json

from app.workspace import session_json


def to_session_file(workspace, digests):
    return json.dumps(session_json(workspace, digests), indent=1, ensure_ascii=False)
