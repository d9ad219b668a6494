//! Decode trees: the bits that tell the encodings of a root apart, a few at a time.

use super::rows::{DecodeNode, LeafRow};

/// Bits a node looks at.
const MAX_BITS: u32 = 7;
/// So few encodings are compared one by one.
const FEW: usize = 2;

/// Adds the tree of `leaves` (all of one root) and gives its first node.
pub fn grow(leaves: &[LeafRow], width: u32, nodes: &mut Vec<DecodeNode>, picks: &mut Vec<u32>) -> u32 {
    let all: Vec<u32> = (0..leaves.len() as u32).collect();
    let root = nodes.len() as u32;
    nodes.push(DecodeNode::Leaves { at: 0, len: 0 });
    fill(root, &all, leaves, width, nodes, picks);
    root
}

fn fill(
    node: u32,
    among: &[u32],
    leaves: &[LeafRow],
    width: u32,
    nodes: &mut Vec<DecodeNode>,
    picks: &mut Vec<u32>,
) {
    let best = if among.len() > FEW { split(among, leaves, width) } else { None };
    let Some((low, bits)) = best else {
        nodes[node as usize] = DecodeNode::Leaves { at: picks.len() as u32, len: among.len() as u32 };
        picks.extend(among);
        return;
    };
    let first = nodes.len() as u32;
    nodes[node as usize] = DecodeNode::Switch { low: low as u8, bits: bits as u8, first };
    nodes.extend((0..1u32 << bits).map(|_| DecodeNode::Leaves { at: 0, len: 0 }));
    for value in 0..1u32 << bits {
        let here: Vec<u32> =
            among.iter().copied().filter(|&leaf| admits(&leaves[leaf as usize], low, bits, value)).collect();
        fill(first + value, &here, leaves, width, nodes, picks);
    }
}

fn window(row: &LeafRow, low: u32, bits: u32) -> (u32, u32) {
    let ones = (1u128 << bits) - 1;
    ((row.mask >> low & ones) as u32, (row.value >> low & ones) as u32)
}

fn admits(row: &LeafRow, low: u32, bits: u32, value: u32) -> bool {
    let (mask, fixed) = window(row, low, bits);
    value & mask == fixed & mask
}

/// The window whose largest share is smallest, the narrowest of equals; `None` when none makes progress.
fn split(among: &[u32], leaves: &[LeafRow], width: u32) -> Option<(u32, u32)> {
    let mut best = None;
    for bits in 1..=MAX_BITS.min(width) {
        for low in 0..=width - bits {
            let mut shares = vec![0usize; 1 << bits];
            for &leaf in among {
                let (mask, fixed) = window(&leaves[leaf as usize], low, bits);
                let free = !mask & ((1 << bits) - 1);
                // Every value of the free bits, with the fixed ones as they are.
                let mut rest = free;
                loop {
                    shares[(fixed & mask | rest) as usize] += 1;
                    if rest == 0 {
                        break;
                    }
                    rest = (rest - 1) & free;
                }
            }
            let worst = shares.iter().copied().max().unwrap_or(0);
            let cost = (worst, shares.iter().sum::<usize>());
            if worst < among.len() && best.is_none_or(|(old, _)| cost < old) {
                best = Some((cost, (low, bits)));
            }
        }
    }
    best.map(|(_, window)| window)
}
