import copy
import itertools
import pickle

import pytest

torch = pytest.importorskip("torch")

import t4a
import t4a.torch as tt
import t4a.torch.nn as nn
from t4a.structured import Leg, Spec

torch.manual_seed(4)
F64 = {"dtype": torch.float64}


def noise(*shape):
    return torch.randn(*shape, **F64)


def scores(crf, emissions, length):
    """The score of every sequence of tags of one example."""
    tags = crf.transitions.shape[0]
    all = {}
    for y in itertools.product(range(tags), repeat=length):
        score = crf.start[y[0]] + crf.end[y[-1]] + sum(emissions[t, a] for t, a in enumerate(y))
        all[y] = score + sum(crf.transitions[a, b] for a, b in zip(y, y[1:]))
    return all


def test_crf_is_a_sum_over_all_sequences():
    crf, emissions, lengths = nn.CRF(3, **F64), noise(2, 4, 3), [4, 2]
    with torch.no_grad():
        # Large values after the end of a sequence, so that their influence would be visible.
        [p.normal_() for p in crf.parameters()]
    tags = torch.tensor([[0, 2, 1, 1], [2, 0, 9, -1]])
    got, decoded, marginals = crf(emissions, tags, lengths), crf.decode(emissions, lengths), crf.marginals(emissions, lengths)
    for b, n in enumerate(lengths):
        all = scores(crf, emissions[b], n)
        total = torch.logsumexp(torch.stack(list(all.values())), 0)
        torch.testing.assert_close(got[b], all[tuple(tags[b, :n].tolist())] - total)
        torch.testing.assert_close(crf.log_partition(emissions, lengths)[b], total)
        assert tuple(decoded[b]) == max(all, key=all.get)
        want = torch.zeros(4, 3, **F64)
        for y, score in all.items():
            for t, a in enumerate(y):
                want[t, a] += (score - total).exp()
        torch.testing.assert_close(marginals[b], want.detach())
    assert torch.autograd.gradcheck(lambda x, *_: crf(x, tags, lengths), (emissions.requires_grad_(), *crf.parameters()))
    # Derivatives of probabilities.
    crf.marginals(emissions, lengths)[0, 0, 0].backward()
    assert emissions.grad.abs().sum() > 0


def test_crf_against_pytorch_crf():
    torchcrf = pytest.importorskip("torchcrf")
    ours, theirs = nn.CRF(4), torchcrf.CRF(4, batch_first=True)
    with torch.no_grad():
        [p.normal_() for p in ours.parameters()]
        theirs.transitions.copy_(ours.transitions)
        theirs.start_transitions.copy_(ours.start)
        theirs.end_transitions.copy_(ours.end)
    emissions, tags, lengths = torch.randn(30, 6, 4), torch.randint(4, (30, 6)), [6, 3, 1] * 10
    mask = torch.arange(6)[None] < torch.tensor(lengths)[:, None]
    torch.testing.assert_close(ours(emissions, tags, lengths), theirs(emissions, tags, mask, reduction="none"))
    assert ours.decode(emissions, lengths) == theirs.decode(emissions, mask)


def test_crf_checks_tags_and_lengths():
    crf, emissions, tags = nn.CRF(5), torch.zeros(4, 6, 5), torch.zeros(4, 6, dtype=torch.long)
    lengths = [6, 5, 6, 3]
    for wrong in (5, -1, -100, 10**12):
        given = tags.clone()
        given[2, 1] = wrong
        with pytest.raises(t4a.ArgumentError, match=f"sequence 2, step 1: tag {wrong}, but the 5 tags are 0 to 4"):
            crf(emissions, given, lengths)
        # Data cannot be read under vmap: the nearest tag is used.
        alone = torch.func.vmap(lambda tags: crf(emissions, tags, lengths))(given[None])
        assert alone.shape == (1, 4)
    with pytest.raises(t4a.ShapeError, match="3 lengths for a batch of 4 sequences"):
        crf(emissions, tags, lengths[:3])


def test_crf_without_choice_of_ties():
    crf = nn.CRF(3)
    with torch.no_grad():
        [p.zero_() for p in crf.parameters()]
    assert crf.decode(torch.zeros(1, 3, 3)) == [[0, 0, 0]]


def test_semiring_einsum():
    layer, x = nn.SemiringEinsum("bi,io->bo", (4, 3), "max_plus", **F64), noise(5, 4)
    torch.testing.assert_close(layer(x), (x[:, :, None] + layer.weight).max(1).values)
    layer(x).sum().backward()
    assert layer.weight.grad.sum() == 15 and "max_plus" in repr(layer)
    layer = nn.SemiringEinsum("ij,jk,kl->il", (4, 3), memory=4096, optimize=[(1, 2), (0, 1)], **F64)
    a, b = noise(2, 5), noise(5, 4)
    torch.testing.assert_close(layer(a, b), a @ b @ layer.weight)
    for options, text in (({"memory": 0}, "memory=0"), ({"optimize": "best"}, "optimize='best'")):
        with pytest.raises(t4a.ArgumentError, match=text):
            nn.SemiringEinsum("bi,io->bo", (4, 3), **options, **F64)(x)


def test_lengths_are_integers():
    crf = nn.CRF(3)
    for lengths, text in (([2, 1.5], r"lengths\[1\]=1.5"), (torch.tensor([2.0, 1]), r"lengths\[0\]"), (2, "lengths=2")):
        with pytest.raises(t4a.ArgumentError, match=text):
            crf.log_partition(torch.zeros(2, 2, 3), lengths)
    same = [crf.log_partition(torch.zeros(2, 2, 3), n) for n in ([2, 1], torch.tensor([2, 1]))]
    assert same[0].tolist() == same[1].tolist()


def test_tensor_train_linear():
    layer, x = nn.TensorTrainLinear((2, 3, 2), (3, 1, 2), 4, **F64), noise(2, 5, 12)
    a, b, c = layer.cores
    matrix = torch.einsum("aipb,bjqc,ckrd->ijkpqr", a, b, c).reshape(12, 6)
    with torch.no_grad():
        layer.bias.normal_()
    torch.testing.assert_close(layer(x), x @ matrix + layer.bias)
    assert layer(noise(12)).shape == (6,)
    for inputs, outputs, rank, text in (
        ((2, 3), (2,), 1, r"factors \(2, 3\) of the inputs and \(2,\) of the outputs"),
        ((2, 3), (2, 2), 0, "rank=0: an integer of at least 1"),
        ((2, 0), (2, 2), 1, r"inputs\[1\]=0: an integer of at least 1"),
    ):
        with pytest.raises(t4a.ArgumentError, match=text):
            nn.TensorTrainLinear(inputs, outputs, rank)


def test_kalman_is_the_joint_gaussian():
    layer, y = nn.Kalman(2, 1, **F64), noise(3, 4, 1)
    means, covariances, likelihoods = layer(y)
    q, r, p = (layer._covariance(x) for x in (layer.process, layer.noise, layer.spread))
    # Observations are jointly normal: mean and covariance of the concatenated states.
    f, h, n = layer.transition, layer.observation, 4
    blocks, mean, states = [], layer.mean, []
    for t in range(n):
        p = f @ p @ f.T + q
        mean = f @ mean
        blocks.append(p)
        states.append(mean)
    power = lambda k: torch.linalg.matrix_power(f, k)
    covariance = torch.cat([
        torch.cat([power(i - j) @ blocks[j] if i >= j else (power(j - i) @ blocks[i]).T for j in range(n)], 1)
        for i in range(n)
    ])
    observe = torch.block_diag(*[h] * n)
    joint = torch.distributions.MultivariateNormal(
        observe @ torch.cat(states), observe @ covariance @ observe.T + torch.block_diag(*[r] * n)
    )
    torch.testing.assert_close(likelihoods.sum(1), joint.log_prob(y[..., 0]))
    assert means.shape == (3, 4, 2) and covariances.shape == (4, 2, 2)
    likelihoods.sum().backward()
    assert all(x.grad is not None for x in layer.parameters())


def test_graded_weights():
    u1 = lambda sectors, dual=False: Leg(sectors, dual)
    spec = Spec((u1({-1: 2, 0: 1, 1: 2}, True), u1({0: 2, 1: 3}), u1({-1: 1, 0: 2})), 1)
    layer = nn.Weights(spec, **F64)
    x_spec = Spec((u1({0: 2, 1: 1}), u1({-1: 2, 0: 1, 1: 2})), 1, flux=0)
    x = noise(x_spec.size).requires_grad_()
    y, y_spec = layer(x, x_spec, ((1,), (0,)))
    dense = torch.einsum("ab,bcd->acd", torch.tensor(x_spec.to_dense(x.detach())), layer.dense())
    torch.testing.assert_close(torch.tensor(y_spec.to_dense(y.detach())), dense.detach())
    np_places = spec.to_dense(layer.data.detach())
    torch.testing.assert_close(layer.dense().detach(), torch.tensor(np_places))
    # The same loss by the dense tensors has the same gradient.
    (got,) = torch.autograd.grad((y**2).sum(), layer.data)
    (want,) = torch.autograd.grad((dense**2).sum(), layer.data)
    torch.testing.assert_close(got, want)
    assert torch.autograd.gradcheck(lambda x, w: tt.graded_contract(x, w, (x_spec, spec), ((1,), (0,)))[0], (x, layer.data))
    assert torch.autograd.gradgradcheck(lambda x, w: tt.graded_contract(x, w, (x_spec, spec), ((1,), (0,)))[0], (x, layer.data))
    assert "rows=1" in repr(layer) and sum(p.numel() for p in layer.parameters()) == spec.size
    assert [*layer.state_dict()] == ["data"]
    with pytest.raises(TypeError, match="Spec"):
        nn.Weights((3, 4))


@pytest.mark.parametrize("make, inputs", [
    (lambda: nn.CRF(3, **F64), (noise(2, 4, 3), torch.randint(3, (2, 4)))),
    (lambda: nn.SemiringEinsum("bi,io->bo", (4, 3), "log_sum_exp", **F64), (noise(5, 4),)),
    (lambda: nn.TensorTrainLinear((2, 3), (3, 2), 2, **F64), (noise(5, 6),)),
    (lambda: nn.Kalman(2, 1, **F64), (noise(3, 4, 1),)),
], ids=["crf", "semiring", "train", "kalman"])
def test_layers_compile(make, inputs):
    layer = make()
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    first = lambda y: y[2] if isinstance(y, tuple) else y
    torch.testing.assert_close(first(compiled(*inputs)), first(layer(*inputs)))
    first(compiled(*inputs)).sum().backward()
    assert all(x.grad is not None for x in layer.parameters())


def test_shapes_of_inputs_are_checked():
    crf, emissions, tags = nn.CRF(3), torch.zeros(2, 4, 3), torch.zeros(2, 4, dtype=torch.long)
    # Tags of one sequence would have the emissions of the first one everywhere.
    for wrong in (tags[:1], tags[:, :3], tags[0]):
        with pytest.raises(t4a.ShapeError, match=r"tags of shape .*\[2, 4\] is required"):
            crf(emissions, wrong)
    for wrong in (emissions[0], emissions[:, :, :1], torch.zeros(2, 4, 5)):
        for call in (lambda x: crf(x, tags), crf.log_partition, crf.marginals, crf.decode):
            with pytest.raises(t4a.ShapeError, match=r"\[batch, length, 3\] is required"):
                call(wrong)
    with pytest.raises(t4a.DtypeError, match="tags of float32"):
        crf(emissions, tags.float())
    assert torch.equal(crf(emissions, tags.int()), crf(emissions, tags))
    for count in (0, -1, 2.5):
        with pytest.raises(t4a.ArgumentError, match="tags"):
            nn.CRF(count)
    with pytest.raises(t4a.ShapeError, match=r"\[..., 6\] is required"):
        nn.TensorTrainLinear((2, 3), (3, 2), 2)(torch.zeros(5, 12))
    assert repr(crf) == "CRF(tags=3)" and repr(nn.Kalman(2, 1)) == "Kalman(states=2, observed=1)"


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.function, self.crf = tt.softmax, nn.CRF(2)


def test_layers_hold_functions():
    layer = Layer()
    for same in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)):
        assert same.function is tt.softmax
        assert all(map(torch.equal, same.state_dict().values(), layer.state_dict().values()))
