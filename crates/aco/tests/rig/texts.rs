//! Shaders written as text, whose values and constructs have names.

use std::collections::BTreeMap;
use unwedge_shader::ir::{Shader, Stage};
use unwedge_shader::text;

/// The text with numbers for the names of values and of constructs.
pub fn numbered(text: &str) -> String {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['%', '<']) {
        let (before, name) = rest.split_at(at + 1);
        out += before;
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
        let is_label = before.ends_with('<') && name.starts_with(['L', 'G', 'E']);
        if before.ends_with('%') || is_label {
            let next = names.len();
            let number = *names.entry(name[..end].to_owned()).or_insert(next);
            out += &format!("{}{number}", if is_label { "L" } else { "" });
        } else {
            out += &name[..end];
        }
        rest = &name[end..];
    }
    out + rest
}

/// A shader of a stage with the body of its function, in which `%zero` is 0.
pub fn shader_of(stage: Stage, body: &str) -> Shader {
    let text = format!(
        "shader {} \"main\"\nworkgroup_size 1 1 1\nsizes shared 0 scratch 0 push 0\nfloats 16 nearest any\nfloats 32 nearest any\n\
         floats 64 nearest any\nfn f0 \"main\" () -> () {{\n%zero: b32 = const<0x0>\n{body}return\n}}\n",
        stage.name()
    );
    let mut shader = Shader::default();
    text::parse(&numbered(&text), &mut shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    shader
}

/// A fragment shader that stores the value `%all` of its body as its colour.
pub fn colour_shader(body: &str) -> Shader {
    shader_of(Stage::Fragment, &format!("{body}store_slot<out slot 32 component 0 index 0> %all, %zero\n"))
}
