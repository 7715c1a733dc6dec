"""Embedding of videos: motion features, networks of the user, damaged videos, resumption, and training on video alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.video_files import write_numbered_video, write_video

import ethobench as eb
from ethobench.core import Signals
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError, PathExistsError
from ethobench.features.video_motion import NAMES, MotionEncoder
from ethobench.training.video_embedding import embed_videos, find_videos, write_embedding_manifest
from ethobench.training.video_encoders import EncoderInput, open_encoder

av = pytest.importorskip("av", reason="videos need av")
TOML = "size = [8, 6]\nmean = [0.5, 0.5, 0.5]\nstd = [0.25, 0.25, 0.25]\nstride = 2\nbatch = 4\n"


def draw(path: Path, speeds: list[int], seed: int = 0, rate: int = 10) -> Path:
    """Write a video of a dark square that moves by a number of pixels in each frame."""
    rng = np.random.default_rng(seed)
    floor = 160 + rng.normal(scale=8, size=(96, 128))
    x, direction = 10, 1
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=rate)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 128, 96, "yuv420p", 1_000_000
        for speed in speeds:
            x += direction * speed
            if not 5 < x < 105:
                direction, x = -direction, int(np.clip(x, 6, 104))
            picture = floor + rng.normal(scale=2, size=floor.shape)
            picture[40:56, x : x + 16] = 30
            rgb = np.repeat(np.clip(picture, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24")))
        container.mux(stream.encode())
    return path


def bouts_of_speed(seed: int, n: int = 12) -> list[int]:
    """Return bouts of standing and running, of 1 to 3 s at 10 frames per second."""
    rng = np.random.default_rng(seed)
    return [speed for i in range(n) for speed in [3 * (i % 2)] * int(rng.integers(10, 30))]


def test_motion_features_describe_speed_and_change() -> None:
    encoder = MotionEncoder(np.full((48, 64), 100.0, dtype=np.float32), rate=10.0)
    rows = []
    for i in range(60):
        picture = np.full((48, 64), 100.0, dtype=np.float32)
        x = 10 + (i - 30 if i > 30 else 0)
        picture[20:28, x : x + 8] = 10
        rows.append(encoder.encode(picture))
    table = dict(zip(NAMES, np.stack(rows).T, strict=True))
    for name in ("speed_0.5s", "change_0s_mean", "flow_mean", "picture_change", "coarse_flow_mean"):
        assert table[name][10:30].max() < 0.01 * table[name][45:].mean(), name
    assert np.isfinite(np.stack(rows)).all()
    assert len({*NAMES}) == len(NAMES) <= 64


def test_motion_features_do_not_depend_on_light_or_position() -> None:
    def encode(dx: int, light: float) -> np.ndarray:
        encoder = MotionEncoder(np.full((96, 96), 100.0, dtype=np.float32), rate=10.0)
        for i in range(15):
            picture = np.full((96, 96), 100.0 + light, dtype=np.float32)
            picture[40:50, 30 + dx + i : 44 + dx + i] = 20 + light
            row = encoder.encode(picture)
        return row

    reference, shifted, brighter = encode(0, 0.0), encode(8, 0.0), encode(0, 15.0)
    chosen = [i for i, name in enumerate(NAMES) if name != "wall_distance"]
    assert np.allclose(reference[chosen], shifted[chosen], rtol=0.05, atol=0.02)
    assert np.allclose(reference, brighter, rtol=0.05, atol=0.02)


def test_embedding_is_resumed_and_described(tmp_path: Path) -> None:
    videos = [write_video(tmp_path / f"v{i}.webm", 20, 10) for i in range(2)]
    results = list(embed_videos(videos, tmp_path / "out"))
    assert [result.status for result in results] == ["computed", "computed"]
    values = np.load(tmp_path / "out" / "v0.npy")
    facts = json.loads((tmp_path / "out" / "v0.npy.json").read_text())
    assert values.shape == (20, len(NAMES))
    assert values.dtype == np.float32
    assert (facts["encoder"], facts["stride"], facts["rate"], facts["format_version"]) == ("motion1", 1, 10.0, 1)
    (tmp_path / "out" / "v1.npy").unlink()  # as after a crash
    assert [r.status for r in embed_videos(videos, tmp_path / "out")] == ["finished before", "computed"]
    (tmp_path / "out" / "v1.npy.json").unlink()  # a file of another tool
    with pytest.raises(PathExistsError, match="already exists, from another encoder or another video"):
        list(embed_videos(videos, tmp_path / "out"))
    assert [r.status for r in embed_videos(videos, tmp_path / "out", overwrite=True)] == ["finished before", "computed"]
    manifest = write_embedding_manifest(results, tmp_path / "out")
    assert manifest is not None
    recording = eb.load_dataset(manifest.parent)["v0"]
    assert isinstance(recording.signals, Signals)
    assert np.array_equal(recording.signals.values, values)
    assert write_embedding_manifest(results, tmp_path / "out") is None


def test_damaged_videos_do_not_stop_the_others(tmp_path: Path) -> None:
    source = draw(tmp_path / "whole.mp4", [2] * 40)
    content = source.read_bytes()
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "text.mp4").write_text("no video")
    middle = bytearray(content)
    middle[len(content) // 2 : len(content) // 2 + 200] = bytes(200)
    (tmp_path / "damaged.mp4").write_bytes(middle)
    results = {result.video.stem: result for result in embed_videos([tmp_path], tmp_path / "out")}
    assert results["whole"].status == "computed"
    assert (results["empty"].status, results["text"].status) == ("failed", "failed")
    assert results["damaged"].status == "computed"
    assert not (tmp_path / "out" / "text.npy").exists()


def test_truncated_videos_have_missing_rows(tmp_path: Path) -> None:
    content = draw(tmp_path / "whole.avi", [2] * 60).read_bytes()
    (tmp_path / "cut.avi").write_bytes(content[: len(content) // 2])
    result = next(iter(embed_videos([tmp_path / "cut.avi"], tmp_path / "out")))
    values = np.load(result.features)
    assert len(values) == 60
    assert 20 < result.n_missing < 40
    assert np.isnan(values[-result.n_missing :]).all()
    assert np.isfinite(values[: -result.n_missing]).all()


def test_variable_rate_is_sampled_at_regular_times(tmp_path: Path) -> None:
    times = [*np.arange(20) / 20, *(1 + np.arange(10) / 10)]
    path = write_numbered_video(tmp_path / "vfr.mp4", times)
    result = next(iter(embed_videos([path], tmp_path / "out")))
    assert result.status == "computed"
    assert (result.n_samples, result.n_missing) == (30, 0)
    assert result.rate == pytest.approx(30 / 1.9)


def test_find_videos(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="has no videos"):
        find_videos([tmp_path])
    with pytest.raises(NotFoundError, match="does not exist"):
        find_videos([tmp_path / "a.mp4"])


def make_onnx(path: Path, width: int = 5) -> Path:
    """Write a random convolution with global average pooling, and its description."""
    onnx = pytest.importorskip("onnx", reason="making an encoder needs onnx")
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).normal(size=(width, 3, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 6, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", width, 4, 6])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))
    path.with_suffix(".toml").write_text(TOML)
    return path


def test_onnx_encoder_computes_what_the_network_does(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    path = make_onnx(tmp_path / "conv.onnx")
    video = draw(tmp_path / "v.mp4", [2] * 21)
    result = next(iter(embed_videos([video], tmp_path / "out", str(path))))
    values = np.load(result.features)
    assert values.shape == (11, 5)
    from onnx import load, numpy_helper
    from scipy.signal import correlate

    weights = numpy_helper.to_array(load(str(path)).graph.initializer[0])
    described = EncoderInput.read(path.with_suffix(".toml"))
    with av.open(str(video)) as container:
        pictures = [described.picture(frame) for frame in container.decode(video=0)]
    for row, picture in zip(values, pictures[::2], strict=True):
        maps = [correlate(picture, kernel, mode="valid")[0] for kernel in weights]
        assert np.allclose(row, [np.maximum(each, 0).mean() for each in maps], atol=1e-4)
    facts = json.loads((tmp_path / "out" / "v.npy.json").read_text())
    assert facts["names"][0].startswith("conv-")
    assert facts["stride"] == 2


@pytest.mark.slow  # the compiler of TorchScript takes seconds to load
def test_torchscript_needs_trust(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    path = tmp_path / "net.pt"
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    torch.jit.save(torch.jit.trace(module.eval(), torch.zeros(1, 3, 6, 8)), str(path))
    path.with_suffix(".toml").write_text(TOML)
    with pytest.raises(EthobenchError, match=r"is a program .* use trust_encoder=True"):
        open_encoder(str(path))
    video = draw(tmp_path / "v.mp4", [2] * 8)
    result = next(iter(embed_videos([video], tmp_path / "out", str(path), trust_encoder=True)))
    assert np.load(result.features).shape == (4, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no size"),
        ("size = [8]", "width and height"),
        ("size = [8, 6]\ncolour = 'rgb'", "unknown settings: colour"),
        ("size = [8, 6]\nframes = 4", "several frames need the layout"),
        ("size = [8, 6]\nstd = [0, 0, 0]", "std must be"),
        ("size = [8, 6]\nstride = 0", "stride must be"),
        ("size = [8, 6", "not a valid TOML"),
    ],
)
def test_descriptions_are_checked(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(FormatError, match=message):
        EncoderInput.read(tmp_path / "e.toml")


def test_unknown_and_damaged_encoders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no encoder 'dino'"):
        open_encoder("dino")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    (tmp_path / "bad.onnx").write_bytes(b"no network")
    with pytest.raises(FormatError, match=r"bad.toml: no such file: it describes the input"):
        open_encoder(str(tmp_path / "bad.onnx"))
    (tmp_path / "bad.toml").write_text(TOML)
    with pytest.raises(FormatError, match="not a valid ONNX file"):
        open_encoder(str(tmp_path / "bad.onnx"))


def test_clips_of_several_pictures(tmp_path: Path) -> None:
    described = EncoderInput((8, 6), frames=3, layout="NCTHW", color="gray")
    samples = [[np.full((1, 6, 8), float(t), dtype=np.float32) for t in range(3)] for _ in range(2)]
    assert described.join(samples).shape == (2, 1, 3, 6, 8)
    assert described.join(samples)[0, 0, :, 0, 0].tolist() == [0, 1, 2]


@pytest.mark.slow
def test_training_on_video_alone(tmp_path: Path) -> None:
    """Videos, features and annotations are enough to train, and the model finds running in a new video."""
    lines = ["recording,individual,video,features,annotations,annotator"]
    for i in range(4):
        speeds = bouts_of_speed(i)
        draw(tmp_path / f"v{i}.mp4", speeds, seed=i)
        labels = eb.Annotation.from_frames([int(speed > 0) for speed in speeds], ["rest", "run"], rate=10)
        eb.write_annotation(labels, tmp_path / f"v{i}.csv")
        lines.append(f"v{i},m{i},v{i}.mp4,features/v{i}.npy,v{i}.csv,ann")
    assert all(result.status == "computed" for result in embed_videos([tmp_path], tmp_path / "features"))
    (tmp_path / "recordings.csv").write_text("\n".join(lines) + "\n")
    data = eb.load_dataset(tmp_path)
    model = eb.create_model("boost", rounds=30).fit(data.select(recordings=["v0", "v1", "v2"]))
    scores = eb.score(model.annotate(data["v3"]), data["v3"].annotation(), resamples=0)
    assert scores.overall["f1"] > 0.9
