"""Norms and 8-bit quantisation as PyTorch writes them: f32 inside, each step a tensor."""

from __future__ import annotations

import torch

FLOOR = 1e-10


def rmsnorm(s: torch.Tensor, gain: torch.Tensor, eps: float) -> torch.Tensor:
    """s / sqrt(mean(s^2) + eps) * gain over the last axis, in f32, unrounded."""
    return s * torch.rsqrt(s.pow(2).mean(dim=-1, keepdim=True) + eps) * gain


def group_quant(
    y: torch.Tensor, group: int, code_max: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """bf16 [rows, width] -> E4M3FN codes of the same shape, f32 scales [rows, width // group].

    NaNs do not count for a scale, as in Triton's maximum.
    """
    parts = y.float().reshape(len(y), -1, group)
    amax = parts.abs().nan_to_num(nan=0.0, posinf=float("inf")).amax(dim=-1)
    scale = amax.clamp(min=FLOOR) / code_max
    codes = (parts / scale[..., None]).clamp(-code_max, code_max).to(torch.float8_e4m3fn)
    return codes.reshape(y.shape), scale
