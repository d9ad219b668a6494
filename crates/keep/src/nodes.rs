//! The nodes that dumps appear in, and which of them are to be read now.
//!
//! Nodes of devcoredumps are new for every dump: their numbers are never used twice. The file of an i915 is always there, so its first
//! bytes tell whether it holds a dump that is already kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause. Dumps are there for minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSource {
    /// `/sys/class/devcoredump/devcd*/data`.
    Devcoredump,
    /// `/sys/class/drm/card*/error`, or `i915_error_state` of debugfs.
    I915,
    /// A file that somebody else put into a folder. There is no kernel to acknowledge it to.
    Folder,
}

/// A node that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenNode {
    /// The file.
    pub path: PathBuf,
    /// What tells it from an earlier file of the same name: its inode, and more where files change.
    pub version: u64,
    /// Where it is.
    pub source: NodeSource,
}

/// A node that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueNode {
    /// The node.
    pub node: SeenNode,
    /// The head of the dump that was kept of it before.
    pub known_head: Option<u64>,
}

/// How the last attempt at a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Nothing is left to do with it, unless it gets another head.
    Finished {
        /// The hash of its first bytes.
        head: Option<u64>,
    },
    /// It held no dump.
    Empty,
    /// It is to be tried again.
    Failed,
}

#[derive(Clone, Copy, Debug)]
enum NodeState {
    Busy { known_head: Option<u64>, pause: Duration },
    Finished { head: Option<u64> },
    Waits { until: Instant, pause: Duration, known_head: Option<u64> },
}

/// What is known of all nodes.
#[derive(Debug, Default)]
pub struct NodeTable(HashMap<PathBuf, (u64, NodeState)>);

impl NodeTable {
    /// Takes at most `most` of the nodes that are there and are to be read now. Each is busy until [`NodeTable::ended`]. Nodes that
    /// are gone are forgotten.
    pub fn take_due(&mut self, seen: &[SeenNode], now: Instant, most: usize) -> Vec<DueNode> {
        let versions: HashMap<&Path, u64> = seen.iter().map(|n| (n.path.as_path(), n.version)).collect();
        self.0.retain(|path, (version, state)| {
            matches!(state, NodeState::Busy { .. }) || versions.get(path.as_path()) == Some(version)
        });
        let mut due = Vec::new();
        for node in seen {
            if due.len() >= most {
                break;
            }
            let (known_head, pause) = match self.0.get(&node.path).map(|(_, state)| *state) {
                None => (None, Duration::ZERO),
                Some(NodeState::Finished { head: Some(head) }) if node.source == NodeSource::I915 => {
                    (Some(head), Duration::ZERO)
                }
                Some(NodeState::Waits { until, pause, known_head }) if until <= now => (known_head, pause),
                Some(_) => continue,
            };
            self.0.insert(node.path.clone(), (node.version, NodeState::Busy { known_head, pause }));
            due.push(DueNode { node: node.clone(), known_head });
        }
        due
    }

    /// Takes down how an attempt ended.
    pub fn ended(&mut self, path: &Path, attempt: Attempt, now: Instant) {
        let Some((_, state)) = self.0.get_mut(path) else { return };
        let (known_head, pause) = match *state {
            NodeState::Busy { known_head, pause } => (known_head, pause),
            _ => (None, Duration::ZERO),
        };
        *state = match attempt {
            Attempt::Finished { head } => NodeState::Finished { head },
            Attempt::Empty => NodeState::Waits { until: now, pause: Duration::ZERO, known_head: None },
            Attempt::Failed => {
                let pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                NodeState::Waits { until: now + pause, pause, known_head }
            }
        };
    }

    /// How many nodes are being read.
    pub fn busy(&self) -> usize {
        self.0.values().filter(|(_, state)| matches!(state, NodeState::Busy { .. })).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(path: &str, version: u64, source: NodeSource) -> SeenNode {
        SeenNode { path: PathBuf::from(path), version, source }
    }

    fn paths(due: &[DueNode]) -> Vec<&str> {
        due.iter().map(|due| due.node.path.to_str().unwrap()).collect()
    }

    #[test]
    fn a_node_is_read_once_while_it_is_there() {
        let (mut table, now) = (NodeTable::default(), Instant::now());
        let seen = [node("devcd1", 1, NodeSource::Devcoredump), node("devcd2", 2, NodeSource::Devcoredump)];
        assert_eq!(paths(&table.take_due(&seen, now, 1)), ["devcd1"]);
        assert_eq!(paths(&table.take_due(&seen, now, 9)), ["devcd2"], "the first is busy");
        table.ended(Path::new("devcd1"), Attempt::Finished { head: Some(7) }, now);
        table.ended(Path::new("devcd2"), Attempt::Finished { head: Some(7) }, now);
        assert!(table.take_due(&seen, now, 9).is_empty());
        // A number that is used again after all is another node.
        let again = [node("devcd1", 3, NodeSource::Devcoredump)];
        assert_eq!(paths(&table.take_due(&again, now, 9)), ["devcd1"]);
    }

    #[test]
    fn a_failed_node_is_tried_again_and_again_with_longer_pauses() {
        let (mut table, mut now) = (NodeTable::default(), Instant::now());
        let seen = [node("devcd1", 1, NodeSource::Devcoredump)];
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let mut waited = Duration::ZERO;
            while table.take_due(&seen, now, 1).is_empty() {
                now += Duration::from_millis(100);
                waited += Duration::from_millis(100);
            }
            pauses.push(waited.as_millis());
            table.ended(Path::new("devcd1"), Attempt::Failed, now);
        }
        assert_eq!(pauses, [0, 500, 1000, 2000, 4000, 8000]);
    }

    #[test]
    fn the_file_of_an_i915_is_looked_at_again_with_the_head_that_is_known() {
        let (mut table, now) = (NodeTable::default(), Instant::now());
        let seen = [node("error", 1, NodeSource::I915)];
        for (attempt, known_head) in [
            (Attempt::Empty, None),
            (Attempt::Finished { head: Some(7) }, None),
            (Attempt::Finished { head: Some(7) }, Some(7)),
            (Attempt::Empty, Some(7)),
            (Attempt::Finished { head: Some(8) }, None),
        ] {
            let due = table.take_due(&seen, now, 1);
            assert_eq!(due.first().map(|due| due.known_head), Some(known_head));
            table.ended(Path::new("error"), attempt, now);
        }
        assert_eq!(table.busy(), 0);
    }
}
