//! How fast code is checked, in bytes of code.

fn main() {
    divan::main();
}
