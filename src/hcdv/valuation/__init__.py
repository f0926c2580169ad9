"""Stage III: from coalitions to the value of every point, C → ψ → φ."""
