"""Zones drawn in the viewer: saved in the folder of corrections, never over the user's own, and loaded with the study."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ethobench as eb
from ethobench.app.opening import open_project
from ethobench.core.errors import ReadWarning
from ethobench.datasets.zones import ZONES, read_zones, zones_of

pytest.importorskip("shapely", reason="zones need shapely: pip install ethobench[stats]")

OWN = "name,shape,coordinates,unit,recording\nnest,circle,5 5; 2,cm,\n"
CENTER = {"name": "center", "shape": "rectangle", "coordinates": [[10, 20], [60.5, 70]], "recording": ""}


@pytest.fixture
def arena(tmp_path):
    """Two recordings of one animal with poses of one keypoint, and a zone of the user."""
    root = tmp_path / "arena"
    root.mkdir()
    for name in ("m1", "m2"):
        rows = "\n".join(f"{i},{40 + 10 * np.sin(i):.2f},{50 + i / 10:.2f},0.9" for i in range(100))
        header = "scorer,net,net,net\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood"
        (root / f"{name}.csv").write_text(f"{header}\n{rows}\n", encoding="utf-8")
    (root / "recordings.csv").write_text(
        "recording,individual,rate,signals,pixels_per_cm,width,height\nm1,a,10,m1.csv,10,100,100\nm2,b,10,m2.csv,20,200,200\n",
        encoding="utf-8",
    )
    (root / ZONES).write_text(OWN, encoding="utf-8")
    return root


def save(client, zones, status=200, revision=None):
    return client.post(
        "zones", {"revision": client.get("recordings/0/zones")["revision"] if revision is None else revision, "zones": zones}, status
    )


def test_drawn_zones_are_saved_with_the_labels_and_loaded_with_the_study(arena, serving):
    client = serving(open_project([str(arena)]))
    shown = client.get("recordings/1/zones")
    assert (shown["zones"], shown["recording"]) == ([], "m2")
    assert [(zone["name"], zone["coordinates"]) for zone in shown["fixed"]] == [("nest", [[100, 100], [40]])]  # 20 pixels per cm
    feeder = {"name": "餌場", "shape": "polygon", "coordinates": "0 0; 40 0; 20 35", "recording": "m2"}
    save(client, [CENTER, feeder])
    assert (arena / ZONES).read_text(encoding="utf-8") == OWN
    assert [zone.name for zone in read_zones(arena / "corrections" / ZONES)] == ["center", "餌場"]
    data = eb.load_dataset(arena)
    assert [zone.name for zone in zones_of(data["m1"])] == ["nest", "center"]
    assert [zone.name for zone in zones_of(data["m2"])] == ["nest", "center", "餌場"]
    occupancy = eb.zone_occupancy(data)
    assert {*occupancy["zone"]} >= {"nest", "center", "餌場"}
    reopened = serving(open_project([str(arena)])).get("recordings/0/zones")
    assert [zone["name"] for zone in reopened["zones"]] == ["center", "餌場"]
    assert [zone["name"] for zone in reopened["fixed"]] == ["nest"]
    save(client, [])
    assert [zone.name for zone in zones_of(eb.load_dataset(arena)["m1"])] == ["nest"]


@pytest.mark.parametrize(
    ("zones", "message"),
    [
        ([CENTER | {"name": ""}], "a zone has no name"),
        ([CENTER, CENTER], "two zones 'center'"),
        ([CENTER | {"name": "nest"}], "your own zones.csv has a zone 'nest'"),
        ([CENTER | {"recording": "m9"}], "of recording 'm9', which is not open"),
        ([CENTER | {"shape": "polygon", "coordinates": [[0, 0], [10, 10], [10, 0], [0, 10]]}], "crosses itself at (5, 5)"),
        ([CENTER | {"coordinates": [[0, 0], [float("1e999"), 1]]}], "must be finite"),
        ([CENTER | {"coordinates": [["a", 0], [1, 1]]}], "coordinates must be numbers"),
        ([CENTER | {"coordinates": "0 0; x 1"}], "coordinates must be numbers"),
        ([CENTER | {"coordinates": [[500, 500], [600, 600]]}], "outside the image of 100 x 100 pixels of recording 'm1'"),
        ([CENTER | {"shape": "star"}], "no shape 'star'"),
        ("none", "must be a list"),
    ],
)
def test_a_zone_that_is_not_valid_is_refused_and_nothing_is_written(arena, serving, zones, message):
    client = serving(open_project([str(arena)]))
    assert message in save(client, zones, 400)["error"]
    assert not (arena / "corrections" / ZONES).exists()


def test_a_page_with_older_zones_is_refused(arena, serving):
    client = serving(open_project([str(arena)]))
    first = save(client, [CENTER])["revision"]
    save(client, [CENTER | {"coordinates": [[1, 1], [50, 50]]}], revision=first)
    assert "another window" in save(client, [], 409, revision=first)["error"]
    assert read_zones(arena / "corrections" / ZONES)[0].coordinates == ((1, 1), (50, 50))


def test_a_name_that_the_users_file_gets_later_is_theirs_and_damaged_zones_are_skipped(arena, serving):
    client = serving(open_project([str(arena)]))
    save(client, [CENTER])
    (arena / ZONES).write_text(f"{OWN}center,circle,5 5; 1,cm,\n", encoding="utf-8")
    assert [(z.name, z.shape) for z in zones_of(eb.load_dataset(arena)["m1"])] == [("nest", "circle"), ("center", "circle")]
    (arena / "corrections" / ZONES).write_text("name,shape,coordinates\nx,square,1 1\n", encoding="utf-8")
    with pytest.warns(ReadWarning, match="the drawn zones are skipped"):
        data = eb.load_dataset(arena)
    assert len(zones_of(data["m1"])) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadWarning)
        project = open_project([str(arena)])
    damaged = serving(project)
    assert any("drawn zones are not shown" in note for note in damaged.get("project")["notes"])
    assert "no shape 'square'" in damaged.get("recordings/0/zones", 400)["error"]


def test_the_folder_of_labels_alone_can_be_loaded_although_zones_are_of_other_recordings(arena, serving):
    client = serving(open_project([str(arena)], behaviors=["run"]))
    client.post("recordings/0/start", {"name": "anna"})
    save(client, [CENTER | {"recording": "m2"}])
    assert [recording.id for recording in eb.load_dataset(arena / "corrections")] == ["m1"]
