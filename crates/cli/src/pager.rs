//! The pager: `$PAGER`, or `less` with `LESS=FRSMKX` unless the user has set LESS.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A running pager.
pub struct Pager {
    child: Child,
    stdin: ChildStdin,
}

impl Pager {
    /// Starts the pager; `None` when there is none, or the user chose none (`PAGER=` or `PAGER=cat`).
    pub fn start() -> Option<Pager> {
        let mut command = match std::env::var_os("PAGER") {
            Some(pager) if pager.is_empty() || pager == "cat" => return None,
            Some(pager) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(pager);
                shell
            }
            None => Command::new("less"),
        };
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "FRSMKX");
        }
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let stdin = child.stdin.take()?;
        Some(Pager { child, stdin })
    }

    /// Closes its input and waits until the user quits it.
    pub fn wait(self) {
        let Pager { mut child, stdin } = self;
        drop(stdin);
        // Its exit status says nothing about the results.
        let _ = child.wait();
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stdin.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdin.flush()
    }
}
