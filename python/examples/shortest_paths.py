"""Tropical algebra in JAX: shortest paths between all pairs, the roads of a path as a derivative, and MAP estimation of a
noisy image. `python shortest_paths.py`
"""

import jax
import jax.numpy as jnp
import numpy as np

import t4a.jax as tj


def distances(roads):
    """Lengths of shortest paths between all pairs: (min, +) products of the matrix with itself."""
    for _ in range(int(np.ceil(np.log2(len(roads))))):
        roads = tj.einsum("ij,jk->ik", roads, roads, semiring="min_plus")
    return roads


def town(rows, columns, rng):
    """Matrix of the streets of a grid with random lengths; a missing street has infinite length."""
    at = lambda r, c: r * columns + c
    roads = np.full((rows * columns,) * 2, np.inf)
    np.fill_diagonal(roads, 0)
    for r in range(rows):
        for c in range(columns):
            for r2, c2 in ((r, c + 1), (r + 1, c)):
                if r2 < rows and c2 < columns:
                    roads[at(r, c), at(r2, c2)] = roads[at(r2, c2), at(r, c)] = rng.uniform(1, 9)
    return jnp.asarray(roads)


def paths():
    rows, columns, rng = 5, 9, np.random.default_rng(3)
    roads = town(rows, columns, rng)
    # The derivative of a distance with respect to the lengths of streets is 1 on the path and 0 elsewhere.
    length, used = jax.jit(jax.value_and_grad(lambda roads: distances(roads)[0, -1]))(roads)
    used = np.asarray(used)
    steps = used - np.diag(np.diag(used))
    path = [0]
    while path[-1] != rows * columns - 1:
        path.append(int(steps[path[-1]].argmax()))
    total = sum(float(roads[a, b]) for a, b in zip(path, path[1:]))
    print(f"shortest path from corner to corner: {length:.3f}, its streets: {total:.3f}\n")
    for r in range(rows):
        print("   " + " ".join("o" if r * columns + c in path else "." for c in range(columns)))
    assert abs(total - length) < 1e-4
    return length


def picture():
    """Most probable rows of a noisy image, with a prior for equal neighbours in a row."""
    rng, (rows, columns) = np.random.default_rng(0), (8, 32)
    clean = np.zeros((rows, columns), int)
    clean[1:7, 4:14] = 1
    clean[3:6, 18:28] = 1
    noisy = np.where(rng.random(clean.shape) < 0.15, 1 - clean, clean)
    like = jnp.log(jnp.array([[0.9, 0.1], [0.1, 0.9]]))

    def score(evidence):
        """Score of the best assignment of each row: a chain of (max, +) products."""
        best = evidence[:, 0]
        for c in range(1, columns):
            best = tj.einsum("ri,ij->rj", best, like, semiring="max_plus") + evidence[:, c]
        return best.max(1).sum()

    evidence = jnp.log(jnp.where(jnp.asarray(noisy)[..., None] == jnp.arange(2), 0.85, 0.15))
    # The derivative with respect to the evidence is 1 for the states of the best assignment.
    states = np.asarray(jax.grad(score)(evidence)).argmax(2)
    print("\nnoisy" + " " * (columns + 2) + "most probable")
    for a, b in zip(noisy, states):
        print("".join(".#"[x] for x in a) + "     " + "".join(".#"[x] for x in b))
    wrong = [(x != clean).mean() for x in (noisy, states)]
    print(f"wrong pixels: {wrong[0]:.1%}, then {wrong[1]:.1%}")
    assert wrong[1] < wrong[0] / 1.5
    return wrong


if __name__ == "__main__":
    paths()
    picture()
