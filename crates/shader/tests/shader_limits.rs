//! Small modules and texts that ask for much: each is refused or read in time, and passes end in time.

use std::time::{Duration, Instant};
use unwedge_shader::front::spirv::{Options, Reader, SpirvCause};
use unwedge_shader::ir::Shader;
use unwedge_shader::passes::standard;
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;
use unwedge_testkit::spirv::{Module, op};

/// No step takes longer, in a debug build on a busy machine.
const SLOW: Duration = Duration::from_secs(20);

fn in_time<T>(what: &str, step: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = step();
    assert!(start.elapsed() < SLOW, "{what} takes {:?}", start.elapsed());
    result
}

const VOID: u32 = 2;
const FUNCTION: u32 = 3;
const UINT: u32 = 4;
const BOOL: u32 = 5;
const ZERO: u32 = 6;
const CONDITION: u32 = 7;
const ENTRY: u32 = 8;

/// A compute shader with a condition that is not known.
fn module() -> Module {
    let mut types = Vec::new();
    op(&mut types, 19, &[VOID]);
    op(&mut types, 33, &[FUNCTION, VOID]);
    op(&mut types, 21, &[UINT, 32, 0]);
    op(&mut types, 20, &[BOOL]);
    op(&mut types, 43, &[UINT, ZERO, 0]);
    // Undefined, so that nothing folds while it is read.
    op(&mut types, 1, &[BOOL, CONDITION]);
    let mut code = Vec::new();
    op(&mut code, 54, &[VOID, 1, 0, FUNCTION]);
    op(&mut code, 248, &[ENTRY]);
    Module { types, code, bound: ENTRY + 1 }
}

/// Reads a module, and runs the standard passes.
fn read(module: &Module) -> Result<Shader, SpirvCause> {
    let words = module.words(&[], [8, 1, 1]);
    let mut shader = Shader::default();
    in_time("reading", || Reader::default().read(&words, &Options::default(), &mut shader))
        .map_err(|e| e.cause)?;
    in_time("validating", || validate(&shader)).unwrap_or_else(|e| panic!("{e}\n{}", print(&shader)));
    in_time("passes", || standard(&mut shader));
    validate(&shader).unwrap_or_else(|e| panic!("{e}"));
    Ok(shader)
}

#[test]
fn composites_that_double_at_each_level_are_refused() {
    let mut module = module();
    let (mut ty, mut value) = (UINT, ZERO);
    for _ in 0..60 {
        let (outer, composite) = (module.id(), module.id());
        op(&mut module.types, 30, &[outer, ty, ty]);
        op(&mut module.code, 80, &[outer, composite, value, value]);
        (ty, value) = (outer, composite);
    }
    op(&mut module.code, 253, &[]);
    assert!(matches!(read(&module), Err(SpirvCause::Limit(_))));
}

#[test]
fn ladders_of_branches_to_one_exit_are_read_in_time() {
    let mut module = module();
    let exit = module.id();
    for _ in 0..20_000 {
        let next = module.id();
        op(&mut module.code, 250, &[CONDITION, exit, next]);
        op(&mut module.code, 248, &[next]);
    }
    op(&mut module.code, 249, &[exit]);
    op(&mut module.code, 248, &[exit]);
    op(&mut module.code, 253, &[]);
    assert!(matches!(read(&module), Ok(_) | Err(SpirvCause::Limit(_))));
}

#[test]
fn many_loops_in_a_row_are_read() {
    let mut module = module();
    for _ in 0..5_000 {
        let (header, after) = (module.id(), module.id());
        op(&mut module.code, 249, &[header]);
        op(&mut module.code, 248, &[header]);
        op(&mut module.code, 250, &[CONDITION, header, after]);
        op(&mut module.code, 248, &[after]);
    }
    op(&mut module.code, 253, &[]);
    assert!(read(&module).is_ok());
}

#[test]
fn many_branches_in_a_row_are_read() {
    let mut module = module();
    for _ in 0..5_000 {
        let (then, merge) = (module.id(), module.id());
        op(&mut module.code, 247, &[merge, 0]);
        op(&mut module.code, 250, &[CONDITION, then, merge]);
        op(&mut module.code, 248, &[then]);
        op(&mut module.code, 249, &[merge]);
        op(&mut module.code, 248, &[merge]);
    }
    op(&mut module.code, 253, &[]);
    assert!(read(&module).is_ok());
}

#[test]
fn loops_within_loops_are_refused_in_time() {
    let mut module = module();
    let mut headers = Vec::new();
    for _ in 0..20_000 {
        let header = module.id();
        op(&mut module.code, 249, &[header]);
        op(&mut module.code, 248, &[header]);
        headers.push(header);
    }
    for header in headers.into_iter().rev() {
        let after = module.id();
        op(&mut module.code, 250, &[CONDITION, header, after]);
        op(&mut module.code, 248, &[after]);
    }
    op(&mut module.code, 253, &[]);
    assert!(matches!(read(&module), Err(SpirvCause::Limit(_))));
}

#[test]
fn webs_of_phis_are_read_in_time() {
    // One block with many phis, and a loop that rotates many values.
    let mut module = module();
    let (then, merge) = (module.id(), module.id());
    op(&mut module.code, 250, &[CONDITION, then, merge]);
    op(&mut module.code, 248, &[then]);
    op(&mut module.code, 249, &[merge]);
    op(&mut module.code, 248, &[merge]);
    for _ in 0..20_000 {
        let phi = module.id();
        op(&mut module.code, 245, &[UINT, phi, ZERO, ENTRY, ZERO, then]);
    }
    let (header, after) = (module.id(), module.id());
    let phis: Vec<u32> = (0..500).map(|_| module.id()).collect();
    op(&mut module.code, 249, &[header]);
    op(&mut module.code, 248, &[header]);
    for (number, &phi) in phis.iter().enumerate() {
        let next = phis[(number + 1) % phis.len()];
        op(&mut module.code, 245, &[UINT, phi, ZERO, merge, next, header]);
    }
    op(&mut module.code, 250, &[CONDITION, header, after]);
    op(&mut module.code, 248, &[after]);
    op(&mut module.code, 253, &[]);
    assert!(read(&module).is_ok());
}

const HEAD: &str = "shader compute \"\"\nworkgroup_size 8 1 1\nsizes shared 0 scratch 0 push 0\n";

/// Parses a text, and runs the passes.
fn text(text: &str) {
    let mut shader = Shader::default();
    in_time("parsing", || parse(text, &mut shader)).unwrap_or_else(|e| panic!("{e}"));
    in_time("validating", || validate(&shader)).unwrap_or_else(|e| panic!("{e}"));
    in_time("passes", || standard(&mut shader));
    validate(&shader).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn results_that_are_handed_on_from_block_to_block_are_followed_once() {
    let mut body = String::from("%0: b32 = sysval<local_invocation_index>\n");
    for number in 1..20_000 {
        let before = number - 1;
        body.push_str(&format!("%{number}: b32 = block<L{number}> {{\nbreak<L{number}> %{before}\n}}\n"));
    }
    text(&format!("{HEAD}fn f0 \"main\" () -> () {{\n{body}return\n}}\n"));
}

#[test]
fn variables_with_more_elements_than_memory_are_left_alone() {
    let mut types = String::from("type t0 = b32\n");
    for number in 1..40 {
        types.push_str(&format!("type t{number} = [4294967295 t{}]\n", number - 1));
    }
    let path = ", %0".repeat(39);
    let body = format!(
        "%0: b32 = const<0x7>\nstore_var<v0 mask 0x1> %0{path}\n%1: b32 = load_var<v0 mask 0x0> {}\n",
        path.trim_start_matches(", ")
    );
    text(&format!("{HEAD}{types}var v0 \"\" private t39\nfn f0 \"main\" () -> () {{\n{body}return\n}}\n"));
}

#[test]
fn regions_as_deep_as_they_may_be_are_passed() {
    let depth = 490;
    let mut body = String::from("%0: b32 = sysval<local_invocation_index>\n%1: b1 = ieq %0, %0\n");
    for number in 0..depth {
        body.push_str(&format!("%{}: b32 = if<L{number}> %1 {{\n", number + 2));
    }
    for number in (0..depth).rev() {
        let value = if number == depth - 1 { 0 } else { number + 3 };
        body.push_str(&format!("break<L{number}> %{value}\n}} else {{\nbreak<L{number}> %0\n}}\n"));
    }
    text(&format!("{HEAD}fn f0 \"main\" () -> () {{\n{body}return\n}}\n"));
}
