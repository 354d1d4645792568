"""The Chebyshev step of `umklapp bench kpm` with PyTorch and cuSPARSE, on the same card: w = 2/a H v - w with both
column-wise products. Prints milliseconds a step and the bandwidth of a device copy.

    python3 benches/peers/kpm_torch.py
"""
import torch

from card import timed

torch.set_grad_enabled(False)
DEVICE = torch.device("cuda")


def cubic(n):
    """Periodic simple cubic lattice with on-site disorder, in compressed rows."""
    i = torch.arange(n**3, device=DEVICE)
    x, y, z = i % n, i // n % n, i // n**2
    near = [i]
    for step in (1, -1):
        near.append((x + step) % n + n * (y + n * z))
        near.append(x + n * ((y + step) % n + n * z))
        near.append(x + n * (y + n * ((z + step) % n)))
    columns, order = torch.stack(near, 1).sort(1)
    values = torch.where(columns == i[:, None], torch.rand(n**3, 1, device=DEVICE, dtype=torch.float64) - 0.5, -1.0)
    rows = torch.arange(0, 7 * n**3 + 1, 7, device=DEVICE)
    return torch.sparse_csr_tensor(rows.int(), columns.flatten().int(), values.flatten(), (n**3, n**3))


def step(h, v, w):
    w.neg_().add_(h @ v, alpha=2.0 / 7.0)
    return (v * v).sum(0), (w * v).sum(0)


x = torch.rand(1 << 28, device=DEVICE, dtype=torch.float64)
y = torch.empty_like(x)
ms = timed(lambda: y.copy_(x))
print(f"copy {2 * x.numel() * 8 / ms / 1e6:.0f} GB/s")
del x, y
for n in (128, 256):
    h = cubic(n)
    for r in (1, 8, 32):
        v = torch.randn(n**3, r, device=DEVICE, dtype=torch.float64)
        w = torch.randn_like(v)
        print(f"cubic {n}^3 disordered CSR R={r}: {timed(lambda: step(h, v, w)):.3f} ms/step")
