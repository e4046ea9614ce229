"""A sequence tagger in PyTorch: emission scores per word, and a CRF with transition scores.

Synthetic sentences: words are letters, and the tag of a word depends on it and on the previous tag. `python crf_tagger.py`
"""

import torch

from t4a.torch import nn

WORDS, TAGS, NAMES = 12, 4, "DNVA"


def sentences(count, length, generator):
    """Words [count, length], tags and lengths: Markov chains of tags that emit words of their own or another set."""
    follow = torch.tensor([[0, 8, 0, 2], [2, 0, 8, 0], [8, 1, 0, 1], [0, 9, 1, 0]]) + 0.1
    tags = torch.zeros(count, length, dtype=torch.long)
    for t in range(1, length):
        tags[:, t] = torch.multinomial(follow[tags[:, t - 1]], 1, generator=generator)[:, 0]
    # With probability 1/3 a word is from the set of another tag, so a word alone does not determine its tag.
    other = torch.randint(TAGS, tags.shape, generator=generator)
    source = torch.where(torch.rand(tags.shape, generator=generator) < 0.34, other, tags)
    words = source * 3 + torch.randint(3, tags.shape, generator=generator)
    lengths = torch.randint(length // 2, length + 1, (count,), generator=generator).tolist()
    return words, tags, lengths


class Tagger(torch.nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.embed = torch.nn.Embedding(WORDS, hidden)
        self.score = torch.nn.Linear(hidden, TAGS)
        self.crf = nn.CRF(TAGS)

    def emissions(self, words):
        return self.score(self.embed(words))

    def forward(self, words, tags, lengths):
        return -self.crf(self.emissions(words), tags, lengths).sum() / sum(lengths)

    def accuracy(self, words, tags, lengths, chain=True):
        """Fraction of correct tags, for the best sequence or the best tag at each position."""
        scores = self.emissions(words)
        found = self.crf.decode(scores, lengths) if chain else [x[:n] for x, n in zip(scores.argmax(2).tolist(), lengths)]
        right = sum(a == b for row, want in zip(found, tags.tolist()) for a, b in zip(row, want))
        return right / sum(lengths)


def main(steps=60):
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    train, test = sentences(64, 10, generator), sentences(200, 10, generator)
    tagger = Tagger()
    optimizer = torch.optim.Adam(tagger.parameters(), lr=0.05)
    for step in range(steps):
        loss = tagger(*train)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1:3}  loss {loss.item():.3f}  {'#' * int(40 * loss.item())}")
    chain, alone = (tagger.accuracy(*test, chain=chain) for chain in (True, False))
    print(f"\nright tags of sentences that were not seen: {chain:.1%}; without the chain {alone:.1%}\n")
    print("learned scores of a tag behind a tag")
    print("      " + "".join(f"{name:>7}" for name in NAMES))
    for name, row in zip(NAMES, tagger.crf.transitions.tolist()):
        print(f"{name:>6}" + "".join(f"{x:7.2f}" for x in row))
    probabilities = tagger.crf.marginals(tagger.emissions(test[0][:1]), test[2][:1])[0].detach()
    print("\nprobabilities of tags in one sentence, from blank for 0 to # for 1")
    for tag, name in enumerate(NAMES):
        print(f"{name:>6} " + "".join(" .:*#"[round(4 * p)] for p in probabilities[: test[2][0], tag].tolist()))
    return chain, alone


if __name__ == "__main__":
    chain, alone = main()
    assert chain > alone + 0.05
