//! `@` lines: what a shader needs from whoever runs it. They make no instruction.

use super::error::AsmProblem;
use super::matcher::is_word;
use super::number;

/// A line that starts with `@`, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Directive {
    /// `@localsize 32, 1, 1`: invocations of a workgroup in x, y, z.
    LocalSize([u32; 3]),
    /// `@const(c1.x) 1.0, 2, 0x3, -4`: values of a constant register; floats as their bits.
    Const {
        /// Index of the four-component register.
        register: u32,
        /// x, y, z, w.
        values: [u32; 4],
    },
    /// `@buf 32 (c2.x) 1, 2`: a storage buffer; `@ubo` a uniform buffer.
    Buffer {
        /// It is a uniform buffer.
        uniform: bool,
        /// Its size in dwords.
        dwords: u32,
        /// Constant register that gets its address.
        address: Option<u32>,
        /// The first dwords.
        contents: Vec<u32>,
    },
    /// `@invocationid(r0.x)`: register of the invocation's id in its workgroup, as components from r0.x.
    InvocationId(u32),
    /// `@wgid(r48.x)` or, before a5xx, `@wgid(c0.x)`: register of the workgroup's id.
    WorkgroupId {
        /// The component, from r0.x or c0.x.
        component: u32,
        /// It is a constant.
        constant: bool,
    },
    /// `@numwg(c1.x)`: constant that gets the count of workgroups, as components from c0.x.
    WorkgroupCount(u32),
    /// `@branchstack 4`: depth of the branch stack.
    BranchStack(u32),
    /// `@pvtmem 64`: private memory per invocation, in bytes.
    PrivateMemory(u32),
    /// `@localmem 1024`: shared memory of a workgroup, in bytes.
    LocalMemory(u32),
    /// `@earlypreamble`: the preamble runs early.
    EarlyPreamble,
    /// `@in(r0.x) name(slot=1)` or `@out(…)`: an input or output in a register.
    Io {
        /// It is an output.
        output: bool,
        /// The component, from r0.x.
        component: u32,
        /// It is half precision.
        half: bool,
        /// The name before the bracket.
        name: String,
        /// The number in the bracket.
        slot: i64,
    },
    /// `@tex(r0.x) src=0, bindless=0, samp=1, tex=2, wrmask=15, cmd=sam`: a sample taken before the shader runs.
    TexturePrefetch {
        /// Register that gets the result: the component, from r0.x.
        component: u32,
        /// The numbers, by name.
        settings: Vec<(String, i64)>,
        /// The instruction it stands for.
        command: String,
    },
}

/// What a directive line means.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DirectiveLine {
    Header(Directive),
    /// Each instruction from here on (`true`) or no longer (`false`) gets a `(rpt5)nop` before it.
    PadWithNops(bool),
    /// Each instruction gets a `(sy)(ss)nop` before it.
    PadWithSyncs(bool),
}

struct DirectiveCursor<'t> {
    text: &'t str,
    pos: usize,
}

type Failed = (usize, AsmProblem);

/// Reads a line, `@` and all; errors come with the byte they are at.
pub(super) fn read(text: &str) -> Result<DirectiveLine, Failed> {
    let mut cursor = DirectiveCursor { text, pos: 1 };
    let name = cursor.word();
    let header = match name {
        "localsize" => {
            let x = cursor.value()?;
            cursor.expect(',')?;
            let y = cursor.value()?;
            cursor.expect(',')?;
            Directive::LocalSize([x, y, cursor.value()?])
        }
        "const" => {
            let at = cursor.bracketed_register(&["c"])?.component;
            let mut values = [0; 4];
            for (i, value) in values.iter_mut().enumerate() {
                if i > 0 {
                    cursor.expect(',')?;
                }
                *value = cursor.value()?;
            }
            Directive::Const { register: at / 4, values }
        }
        "buf" | "ubo" => {
            let dwords = cursor.value()?;
            let address = match cursor.peek() {
                Some('(') => Some(cursor.bracketed_register(&["c"])?.component / 4),
                _ => None,
            };
            let mut contents = Vec::new();
            while cursor.peek().is_some() {
                if !contents.is_empty() {
                    cursor.expect(',')?;
                }
                contents.push(cursor.value()?);
            }
            Directive::Buffer { uniform: name == "ubo", dwords, address, contents }
        }
        "invocationid" => Directive::InvocationId(cursor.bracketed_register(&["r"])?.component),
        "wgid" => {
            let register = cursor.bracketed_register(&["r", "c"])?;
            Directive::WorkgroupId { component: register.component, constant: register.file == "c" }
        }
        "numwg" => Directive::WorkgroupCount(cursor.bracketed_register(&["c"])?.component),
        "branchstack" => Directive::BranchStack(cursor.value()?),
        "pvtmem" => Directive::PrivateMemory(cursor.value()?),
        "localmem" => Directive::LocalMemory(cursor.value()?),
        "earlypreamble" => Directive::EarlyPreamble,
        "in" | "out" => {
            let register = cursor.bracketed_register(&["r", "hr"])?;
            let io = cursor.name()?.to_string();
            cursor.expect('(')?;
            cursor.name()?;
            cursor.expect('=')?;
            let slot = cursor.number()?;
            cursor.expect(')')?;
            Directive::Io {
                output: name == "out",
                component: register.component,
                half: register.file == "hr",
                name: io,
                slot,
            }
        }
        "tex" => {
            let component = cursor.bracketed_register(&["r", "hr"])?.component;
            let mut settings = Vec::new();
            loop {
                let setting = cursor.name()?;
                cursor.expect('=')?;
                if setting == "cmd" {
                    let command = cursor.name()?.to_string();
                    break Directive::TexturePrefetch { component, settings, command };
                }
                settings.push((setting.to_string(), cursor.number()?));
                cursor.expect(',')?;
            }
        }
        "fullnopstart" | "fullnopend" => {
            return cursor.ends(DirectiveLine::PadWithNops(name == "fullnopstart"));
        }
        "fullsyncstart" | "fullsyncend" => {
            return cursor.ends(DirectiveLine::PadWithSyncs(name == "fullsyncstart"));
        }
        _ => return Err((0, AsmProblem::UnknownDirective(name.to_string()))),
    };
    cursor.ends(DirectiveLine::Header(header))
}

struct DirectiveReg<'t> {
    file: &'t str,
    component: u32,
}

impl<'t> DirectiveCursor<'t> {
    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.pos += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.pos..).unwrap_or("")
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.rest().chars().next()
    }

    fn fail<T>(&self, expected: &str) -> Result<T, Failed> {
        Err((self.pos, AsmProblem::Expected(vec![expected.to_string()])))
    }

    fn expect(&mut self, what: char) -> Result<(), Failed> {
        if self.peek() == Some(what) {
            self.pos += what.len_utf8();
            return Ok(());
        }
        self.fail(&format!("`{what}`"))
    }

    fn ends(&mut self, line: DirectiveLine) -> Result<DirectiveLine, Failed> {
        if self.peek().is_none() { Ok(line) } else { self.fail("the end of the line") }
    }

    /// Letters, digits and underscores, perhaps none.
    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.bytes().take_while(|&b| is_word(b)).count();
        self.pos += end;
        &rest[..end]
    }

    fn name(&mut self) -> Result<&'t str, Failed> {
        self.skip_blanks();
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return self.fail("a name");
        }
        match self.word() {
            "" => self.fail("a name"),
            word => Ok(word),
        }
    }

    fn number(&mut self) -> Result<i64, Failed> {
        self.skip_blanks();
        let negative = self.rest().starts_with('-');
        let digits = &self.rest()[usize::from(negative)..];
        let Some((value, used)) = number::integer(digits.as_bytes()) else { return self.fail("a number") };
        let Ok(value) = u32::try_from(value) else { return self.fail("a number of 32 bits") };
        self.pos += usize::from(negative) + used;
        Ok(if negative { -i64::from(value) } else { i64::from(value) })
    }

    /// An integer, or a float's bits.
    fn value(&mut self) -> Result<u32, Failed> {
        self.skip_blanks();
        if let Some((value, used)) = number::float(self.rest().as_bytes())
            && self.rest()[..used].contains('.')
        {
            self.pos += used;
            return Ok(number::single(value) as u32);
        }
        self.number().map(|value| value as u32)
    }

    fn bracketed_register(&mut self, files: &[&'static str]) -> Result<DirectiveReg<'static>, Failed> {
        self.expect('(')?;
        self.skip_blanks();
        let expected = || files.iter().map(|file| format!("a register `{file}0.x`")).collect();
        let found = files.iter().find_map(|file| {
            let rest = self.rest().strip_prefix(file)?;
            let (number, used) = number::decimal(rest.as_bytes())?;
            let component = "xyzw".find(rest[used..].strip_prefix('.')?.chars().next()?)? as u32;
            let register = u32::try_from(number).ok()?.checked_mul(4)?.checked_add(component)?;
            Some((DirectiveReg { file, component: register }, file.len() + used + 2))
        });
        let Some((register, used)) = found else { return Err((self.pos, AsmProblem::Expected(expected()))) };
        self.pos += used;
        self.expect(')')?;
        Ok(register)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Directive {
        match read(text) {
            Ok(DirectiveLine::Header(directive)) => directive,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn headers() {
        assert_eq!(header("@localsize 32, 1,1"), Directive::LocalSize([32, 1, 1]));
        assert_eq!(
            header("@const(c2.x) 1.0, 0x10, -1, 7"),
            Directive::Const { register: 2, values: [0x3f80_0000, 16, u32::MAX, 7] }
        );
        assert_eq!(
            header("@buf 32 (c3.x) 1, 2.0"),
            Directive::Buffer {
                uniform: false,
                dwords: 32,
                address: Some(3),
                contents: vec![1, 0x4000_0000]
            }
        );
        assert_eq!(
            header("@ubo 4"),
            Directive::Buffer { uniform: true, dwords: 4, address: None, contents: vec![] }
        );
        assert_eq!(header("@invocationid(r0.y)"), Directive::InvocationId(1));
        assert_eq!(header("@wgid(r48.x)"), Directive::WorkgroupId { component: 192, constant: false });
        assert_eq!(header("@earlypreamble"), Directive::EarlyPreamble);
        assert_eq!(
            header("@out(hr1.z)\tcolor (slot=4)"),
            Directive::Io { output: true, component: 6, half: true, name: "color".into(), slot: 4 }
        );
        assert!(matches!(
            header("@tex(r0.x) src=0, bindless=0, samp=1, tex=2, wrmask=0xf, cmd=sam"),
            Directive::TexturePrefetch { component: 0, settings, command } if settings.len() == 5 && command == "sam"
        ));
        assert_eq!(read("@fullnopend"), Ok(DirectiveLine::PadWithNops(false)));
    }

    #[test]
    fn errors_say_where() {
        assert_eq!(read("@nothing 1"), Err((0, AsmProblem::UnknownDirective("nothing".to_string()))));
        for (text, at) in [
            ("@localsize 1 2", 13),
            ("@const(r0.x) 1", 7),
            ("@branchstack x", 13),
            ("@pvtmem 1 2", 10),
            ("@in", 3),
        ] {
            let Err((found, AsmProblem::Expected(_))) = read(text) else { panic!("{text}") };
            assert_eq!(found, at, "{text}");
        }
    }
}
