//! Broken dumps: no panic, no loss of a byte, no more memory or time than the input warrants.

use unwedge_testkit::check;
use unwedge_testkit::data;
use unwedge_testkit::devcore::{DevcoreBuilder, variety};
use unwedge_testkit::mutate::{Rng, mutate};

#[test]
fn mutated_synthetic_dumps() {
    let dumps = variety();
    for seed in 0..4000 {
        let (_, text) = &dumps[seed as usize % dumps.len()];
        check::devcore(&mutate(text, seed));
    }
}

#[test]
fn random_ascii85() {
    let mut rng = Rng::new(85);
    for _ in 0..2000 {
        let len = rng.below(64);
        let text: Vec<u8> = (0..len).map(|_| b'!' - 2 + rng.below(93) as u8).collect();
        check::ascii85(&text);
    }
}

#[test]
fn mutated_real_dumps() {
    for (_, text) in data::dumps() {
        for seed in 0..6 {
            check::devcore(&mutate(&text, seed));
        }
    }
}

#[test]
fn every_cut_of_a_dump() {
    let text = DevcoreBuilder::complete(unwedge_base::Generation::A7xx).text();
    for end in 0..text.len() {
        check::devcore(&text[..end]);
    }
}

#[test]
fn many_of_anything_takes_linear_time() {
    let repeated: [&[u8]; 16] = [
        b"\n",
        b"x:\n",
        b"---\n",
        b"kernel: 1\n",
        b"registers:\n",
        b"bos:\n  - iova: 0x1\n",
        b"  - iova: 0x1\n    size: 0xffffffffffffffff\n    data: !!ascii85 |\n     z\n",
        b"  - id: 1\n",
        b"    iova: 1\n",
        b"- bank: 1\n",
        b"    - context: 0\n",
        b"  - cluster-name: A\n",
        b"    queue-history[15]: 1\n",
        b"- {offset:4 value:1\n",
        b"    data: !!ascii85 |\n",
        b"zzzzzzzz",
    ];
    for heading in ["ringbuffer:\n", "bos:\n", "clusters:\n", "shader-blocks:\n  - type: A\n", "gmu-hfi:\n"] {
        for line in repeated {
            check::devcore(&[heading.as_bytes(), &line.repeat(200_000 / line.len())].concat());
        }
    }
}
