"""Multimodal large language models (MLLMs) that annotate videos."""

from ethobench.mllm.answers import Answer, parse_answer

__all__ = ["Answer", "parse_answer"]
