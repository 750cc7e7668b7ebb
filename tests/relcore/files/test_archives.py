"""A .zip of pictures is unpacked below its folder and within its limits, or refused."""

import io
import stat
import zipfile

import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.encoders.pictures import SUFFIXES
from relcore.files import zip_files


def png(colour="red"):
    stream = io.BytesIO()
    Image.new("RGB", (4, 4), colour).save(stream, "PNG")
    return stream.getvalue()


def packed(path, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture(autouse=True)
def confined(monkeypatch):
    monkeypatch.setenv("RELSCOPE_CONFINED", "1")


def unpacked(path, folder):
    folder.mkdir()
    zip_files.unpack(path, folder, SUFFIXES)
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def test_pictures_keep_their_folders_and_what_is_no_picture_is_left_out(tmp_path):
    files = {
        "pets/cat/1.png": png(),
        "pets/dog/1.PNG": png("blue"),
        "pets/notes.txt": b"x",
        "__MACOSX/pets/cat/1.png": b"x",
    }
    path = packed(tmp_path / "a.zip", **files, **{"pets/cat/": b"", "pets/.hidden.png": b"x"})
    assert unpacked(path, tmp_path / "out") == ["cat/1.png", "dog/1.PNG"]
    assert (tmp_path / "out" / "cat" / "1.png").read_bytes() == png()
    assert unpacked(packed(tmp_path / "b.zip", **{"cat/1.png": png()}), tmp_path / "flat") == ["cat/1.png"]


@pytest.mark.parametrize("names", [("c/x.png", "c/x.png/y.png"), ("c/X.png/d/y.png", "c/x.png", "b/z.png")])
def test_a_name_of_a_file_and_a_folder_is_refused(tmp_path, names):
    path = packed(tmp_path / "a.zip", **dict.fromkeys(names, png()))
    with pytest.raises(SpaceError, match=r"a\.zip: .* got a file and folder of one name"):
        unpacked(path, tmp_path / "out")
    assert not [*(tmp_path / "out").iterdir()]


@pytest.mark.parametrize(
    "name",
    [
        "/etc/x.png",
        "a/../../x.png",
        "C:\\x.png",
        "a\\..\\x.png",
        "./x.png",
        "a\nb/x.png",
        "a/" * 20 + "x.png",
    ],
)
def test_a_name_that_could_lead_out_is_refused(tmp_path, name):
    path = packed(tmp_path / "a.zip", **{"ok.png": png(), name: png()})
    with pytest.raises(SpaceError, match="expected names of files below one folder"):
        unpacked(path, tmp_path / "out")
    assert {file.name for file in tmp_path.iterdir()} <= {"a.zip", "out"}


def test_links_bombs_and_too_many_files_are_refused(tmp_path):
    link = zipfile.ZipInfo("l.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    large = packed(tmp_path / "large.zip", **{"x.png": bytes(zip_files._MOST_OF_ONE + 1)})
    twice = packed(tmp_path / "twice.zip", **{"a.png": png(), "A.png": png()})
    none = packed(tmp_path / "none.zip", **{"a.txt": b"x"})
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 and nothing more")
    for path, got in (
        (tmp_path / "link.zip", "links"),
        (large, "a larger one"),
        (twice, "the same name"),
        (none, "got none"),
        (tmp_path / "no.zip", r"no\.zip: expected"),
    ):
        with pytest.raises(SpaceError, match=got):
            unpacked(path, tmp_path / path.stem)


def test_list_that_lies_about_sizes_is_not_believed(tmp_path):
    path = packed(tmp_path / "a.zip", **{"x.png": bytes(1 << 20)})
    content = path.read_bytes()
    small = (1 << 20).to_bytes(4, "little")
    path.write_bytes(content.replace(small, (10).to_bytes(4, "little")))
    with pytest.raises(SpaceError, match=r"a\.zip: expected"):
        unpacked(path, tmp_path / "out")
