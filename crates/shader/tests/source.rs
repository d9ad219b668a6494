//! WGSL and GLSL: each stage is read and keeps its lines, compute shaders run, and errors have a line and a column. A language whose
//! feature is off is refused.

use unwedge_shader::front::{LoadError, ShaderFile, SourceError, SourceLanguage};

#[test]
fn builds_without_a_language_say_so() {
    let languages = [("a.wgsl", "WGSL", cfg!(feature = "wgsl")), ("a.vert", "GLSL", cfg!(feature = "glsl"))];
    for (name, language, is_built) in languages {
        let refused = LoadError::Source(SourceError::NotBuilt(language));
        let error = ShaderFile::named(name, b"void main() {}").err();
        assert_eq!(error == Some(refused), !is_built, "{name}: {error:?}");
    }
    assert_eq!(ShaderFile::named("a.txt", b"void main() {}").err(), Some(LoadError::OtherFile));
    // A language that is given counts, whatever the name and the content.
    for (ending, language) in SourceLanguage::ENDINGS {
        assert_eq!(SourceLanguage::of_name(&format!("a.b.{ending}")), Some(language));
        let error = ShaderFile::source("a.spv", b"\x03\x02\x23\x07", language).err();
        assert!(matches!(error, Some(LoadError::Source(_))), "{ending}: {error:?}");
    }
}

#[cfg(any(feature = "wgsl", feature = "glsl"))]
mod built {
    use super::*;
    use unwedge_shader::front::spirv::Options;
    use unwedge_shader::interp::{self, BindingPoint, Bindings, Dispatch, NoImages, run_compute};
    use unwedge_shader::ir::{Shader, Stage};
    use unwedge_shader::text::print;

    fn load(name: &str, source: &str, stage: Stage) -> Shader {
        let options = Options { stage: Some(stage), ..Options::default() };
        let file = ShaderFile::named(name, source.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let shader = file.load(&options).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(shader.info.stage, stage);
        assert!(shader.locs.values().any(|loc| loc.line > 1), "{name} keeps its lines\n{}", print(&shader));
        assert!(shader.files.iter().any(|file| file == name), "{:?}", shader.files);
        shader
    }

    /// Words 0 to 3 after four invocations that each store the square of their number.
    fn squares(shader: &Shader) {
        let mut bindings = Bindings::default();
        let at = bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, vec![0; 16]);
        let dispatch = Dispatch::new([1, 1, 1]);
        let report = run_compute(shader, dispatch, &mut bindings, &mut NoImages, &interp::Options::default());
        assert_eq!(report.expect("it runs").findings, []);
        assert_eq!(bindings.memory[at], [0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0]);
    }

    fn error(name: &str, source: &str) -> (u32, u32, String) {
        match ShaderFile::named(name, source.as_bytes()) {
            Err(LoadError::Source(SourceError::Line { line, column, message })) => (line, column, message),
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Sources over which a recursive parser overflows its stack are refused, or read.
    #[test]
    fn deep_sources_end() {
        let deep = [("(", ")"), ("-", ""), ("x+", ""), ("[", "]"), ("!(", ")")];
        for name in ["a.wgsl", "a.comp", "a.frag"] {
            for (open, close) in deep {
                for times in [150, 2_000, 60_000] {
                    let expression = format!("{}x{}", open.repeat(times), close.repeat(times));
                    let source = match name {
                        "a.wgsl" => format!("fn f(x: i32) -> i32 {{ return {expression}; }}"),
                        _ => format!("#version 450\nvoid main() {{ int x = 0; x = {expression}; }}"),
                    };
                    // naga decides whether it is valid; it must only come to an end.
                    let _ = ShaderFile::named(name, source.as_bytes());
                }
            }
            for part in ["if (true) {} else ", "while (true) ", "for (;;) "] {
                let source = format!("#version 450\nvoid main() {{ {} ; }}", part.repeat(10_000));
                let _ = ShaderFile::named(name, source.as_bytes());
            }
        }
        let brackets = format!("fn f() {{\n{}", "{".repeat(300));
        #[cfg(feature = "wgsl")]
        assert_eq!(error("a.wgsl", &brackets).0, 2);
        let comment = format!("/* {} */ // {}\n", "(".repeat(300), "[".repeat(300));
        #[cfg(feature = "wgsl")]
        assert!(ShaderFile::named("a.wgsl", comment.as_bytes()).is_ok(), "brackets in comments do not count");
        let list = format!("const a = array<f32, 9000>({}-1.5);\n", "-1.5, ".repeat(8_999));
        #[cfg(feature = "wgsl")]
        assert!(ShaderFile::named("a.wgsl", list.as_bytes()).is_ok(), "a list is not nested");
        #[cfg(not(feature = "wgsl"))]
        let _ = (brackets, comment, list);
    }

    #[cfg(feature = "wgsl")]
    #[test]
    fn wgsl() {
        let source = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;\n\
                      @compute @workgroup_size(4)\nfn squares(@builtin(global_invocation_id) id: vec3<u32>) {\n\
                      d[id.x] = id.x * id.x;\n}\n\
                      @vertex\nfn vertex(@location(0) p: vec4<f32>) -> @builtin(position) vec4<f32> {\nreturn p * 2.0;\n}\n\
                      @fragment\nfn fragment(@location(0) c: vec4<f32>) -> @location(0) vec4<f32> {\nreturn c.bgra;\n}\n";
        squares(&load("a.wgsl", source, Stage::Compute));
        load("a.wgsl", source, Stage::Vertex);
        load("a.wgsl", source, Stage::Fragment);
        let (line, column, message) = error("b.wgsl", "fn f() {\n  let x = y;\n}\n");
        assert_eq!((line, column), (2, 11), "{message}");
        let (line, _, message) = error("b.wgsl", "fn f() -> u32 {\n  return 1.5f;\n}\n");
        assert_eq!(line, 2, "{message}");
    }

    #[cfg(feature = "glsl")]
    #[test]
    fn glsl() {
        let compute = "#version 450\nlayout(local_size_x = 4) in;\n\
                       layout(set = 0, binding = 0) buffer D { uint d[]; };\nvoid main() {\n\
                       uint i = gl_GlobalInvocationID.x;\nd[i] = i * i;\n}\n";
        squares(&load("a.comp", compute, Stage::Compute));
        let vertex =
            "#version 450\nlayout(location = 0) in vec4 p;\nvoid main() {\ngl_Position = p * 2.0;\n}\n";
        load("a.vert", vertex, Stage::Vertex);
        let fragment = "#version 450\nlayout(location = 0) in vec4 c;\nlayout(location = 0) out vec4 o;\n\
                        void main() {\no = c.bgra;\n}\n";
        load("a.frag", fragment, Stage::Fragment);
        let (line, column, message) = error("b.comp", "#version 450\nvoid main() {\n  float x = y;\n}\n");
        assert_eq!((line, column), (3, 13), "{message}");
    }
}
