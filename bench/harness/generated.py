"""Identity of the adapters that a hypernetwork makes of an embedding: what must not change while others learn."""

from __future__ import annotations

from onboard.model.hypernetwork import GeneratedAdapters
from onboard.model.weights import digest


def generated_digest(generated: GeneratedAdapters) -> str:
    """Identity of generated weights. Generate one task at a time: the product's rounding may depend on its shape."""
    stacks = {"encoder": generated.encoder, "decoder": generated.decoder}
    return digest({f"{stack}.{name}": w for stack, ws in stacks.items() for name, w in ws._asdict().items()})
