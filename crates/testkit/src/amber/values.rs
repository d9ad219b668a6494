//! Types of buffers, their layout, and values as scripts write them.

use super::AmberReason;

/// One component of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// A signed integer of so many bits.
    Int(u8),
    /// An unsigned integer of so many bits.
    Uint(u8),
    /// A float of so many bits.
    Float(u8),
}

/// How elements are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Elements and columns are aligned to 16 bytes.
    Std140,
    /// Vectors of three are aligned as vectors of four.
    Std430,
    /// Elements follow each other without gaps, as texels do.
    Packed,
}

/// The type of a buffer's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataType {
    /// What a component is.
    pub component: Component,
    /// Components of a column.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// How they are laid out.
    pub layout: Layout,
}

/// How a value is compared with what is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// Equal; floats may differ by the tolerance.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less.
    Less,
    /// Less or equal.
    LessEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterEqual,
}

impl Compare {
    /// The comparison of a word or sign.
    pub fn parse(text: &str) -> Option<Compare> {
        Some(match text {
            "EQ" | "==" | "~=" => Compare::Equal,
            "NE" | "!=" => Compare::NotEqual,
            "LT" | "<" => Compare::Less,
            "LE" | "<=" => Compare::LessEqual,
            "GT" | ">" => Compare::Greater,
            "GE" | ">=" => Compare::GreaterEqual,
            _ => return None,
        })
    }

    fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        use std::cmp::Ordering::*;
        match self {
            Compare::Equal => order == Some(Equal),
            Compare::NotEqual => order != Some(Equal),
            Compare::Less => order == Some(Less),
            Compare::LessEqual => matches!(order, Some(Less | Equal)),
            Compare::Greater => order == Some(Greater),
            Compare::GreaterEqual => matches!(order, Some(Greater | Equal)),
        }
    }
}

/// By how much a float may differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tolerance {
    pub value: f64,
    /// Whether it is a percentage of what is expected.
    pub percent: bool,
}

/// What floats may differ by where the script says nothing.
const EPSILON: f64 = 0.000_001;

impl Component {
    fn parse(text: &str) -> Option<Component> {
        Some(match text {
            "int" | "int32" => Component::Int(32),
            "uint" | "uint32" => Component::Uint(32),
            "float" => Component::Float(32),
            "double" => Component::Float(64),
            "float16" | "float16_t" => Component::Float(16),
            "int8" | "int8_t" => Component::Int(8),
            "int16" | "int16_t" => Component::Int(16),
            "int64" | "int64_t" => Component::Int(64),
            "uint8" | "uint8_t" => Component::Uint(8),
            "uint16" | "uint16_t" => Component::Uint(16),
            "uint64" | "uint64_t" => Component::Uint(64),
            _ => return None,
        })
    }

    /// Size in bytes.
    pub fn bytes(self) -> usize {
        let (Component::Int(bits) | Component::Uint(bits) | Component::Float(bits)) = self;
        usize::from(bits) / 8
    }

    /// The bytes of a value.
    ///
    /// # Errors
    /// When the text is not a number.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, AmberReason> {
        let bits = match self {
            Component::Float(bits) if !text.starts_with("0x") => {
                let value = float(text)?;
                match bits {
                    16 => half_bits(value),
                    32 => (value as f32).to_bits().into(),
                    _ => value.to_bits(),
                }
            }
            _ => integer(text)? as u64,
        };
        Ok(bits.to_le_bytes()[..self.bytes()].to_vec())
    }

    /// The bytes of `start + step · number`.
    ///
    /// # Errors
    /// When one of the texts is not a number.
    pub fn series(self, start: &str, step: &str, number: usize) -> Result<Vec<u8>, AmberReason> {
        let text = match self {
            Component::Float(_) => (float(start)? + float(step)? * number as f64).to_string(),
            _ => (integer(start)? + integer(step)? * number as i128).to_string(),
        };
        self.encode(&text)
    }

    fn bits(bytes: &[u8]) -> u64 {
        bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    fn float_value(bits: u8, bytes: &[u8]) -> f64 {
        let raw = Component::bits(bytes);
        match bits {
            16 => half_value(raw as u16),
            32 => f32::from_bits(raw as u32).into(),
            _ => f64::from_bits(raw),
        }
    }

    fn integer_value(self, bytes: &[u8]) -> i128 {
        let raw = Component::bits(bytes);
        match self {
            Component::Int(bits) => {
                let unused = 64 - u32::from(bits);
                ((raw << unused) as i64 >> unused).into()
            }
            _ => raw.into(),
        }
    }

    /// A value, rounded.
    pub(super) fn value(self, bytes: &[u8]) -> f64 {
        match self {
            Component::Float(bits) => Component::float_value(bits, bytes),
            _ => self.integer_value(bytes) as f64,
        }
    }

    /// A value as text.
    pub fn show(self, bytes: &[u8]) -> String {
        match self {
            Component::Float(bits) => Component::float_value(bits, bytes).to_string(),
            _ => self.integer_value(bytes).to_string(),
        }
    }

    pub(super) fn compare(
        self,
        bytes: &[u8],
        compare: Compare,
        expected: &str,
        tolerance: Option<&Tolerance>,
    ) -> Result<bool, AmberReason> {
        let expected_bytes = self.encode(expected)?;
        let Component::Float(bits) = self else {
            let (found, wanted) = (self.integer_value(bytes), self.integer_value(&expected_bytes));
            if let (Compare::Equal, Some(tolerance)) = (compare, tolerance) {
                return Ok(near(found as f64, wanted as f64, tolerance));
            }
            return Ok(compare.holds(Some(found.cmp(&wanted))));
        };
        let found = Component::float_value(bits, bytes);
        let wanted = Component::float_value(bits, &expected_bytes);
        if compare == Compare::Equal {
            let default = Tolerance { value: EPSILON, percent: false };
            return Ok(near(found, wanted, tolerance.unwrap_or(&default)));
        }
        Ok(compare.holds(found.partial_cmp(&wanted)))
    }
}

fn near(found: f64, wanted: f64, tolerance: &Tolerance) -> bool {
    let most = if tolerance.percent { (wanted * tolerance.value / 100.0).abs() } else { tolerance.value };
    found == wanted || found.is_nan() && wanted.is_nan() || (found - wanted).abs() <= most
}

fn float(text: &str) -> Result<f64, AmberReason> {
    text.parse().map_err(|_| AmberReason::Syntax(format!("{text} is not a number")))
}

fn integer(text: &str) -> Result<i128, AmberReason> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        // Integers may be written as floats.
        None => text.parse().ok().or_else(|| text.parse::<f64>().ok().map(|value| value as i128)),
    };
    parsed.ok_or_else(|| AmberReason::Syntax(format!("{text} is not an integer")))
}

/// The float of 16 bits that is nearest, ties to even.
fn half_bits(value: f64) -> u64 {
    let sign = u64::from(value.is_sign_negative()) << 15;
    let magnitude = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    // 65520 rounds to infinity.
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = if magnitude < 2f64.powi(-14) { -14 } else { magnitude.log2().floor() as i32 };
    // Units of the last place; a carry moves into the exponent by itself.
    let units = (magnitude / 2f64.powi(exponent - 10)).round_ties_even() as u64;
    let biased = if magnitude < 2f64.powi(-14) { 0 } else { (exponent + 14) as u64 };
    sign | ((biased << 10) + units)
}

fn half_value(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 != 0 { -magnitude } else { magnitude }
}

impl DataType {
    /// A type as Amber (`vec3<float>`, `mat3x3<float>`, `int32`) or VkScript (`ivec3`, `int`) writes it.
    pub fn parse(text: &str) -> Option<DataType> {
        let text = text.strip_suffix("[]").unwrap_or(text);
        if let Some(format) = DataType::of_format(text) {
            return Some(format);
        }
        let layout = Layout::Std430;
        if let Some(component) = Component::parse(text) {
            return Some(DataType { component, rows: 1, columns: 1, layout });
        }
        let number = |text: &str| text.parse().ok().filter(|number| (2..=4).contains(number));
        if let Some((shape, component)) = text.split_once('<') {
            let component = Component::parse(component.strip_suffix('>')?)?;
            if let Some(rows) = shape.strip_prefix("vec") {
                return Some(DataType { component, rows: number(rows)?, columns: 1, layout });
            }
            let (columns, rows) = shape.strip_prefix("mat")?.split_once('x')?;
            return Some(DataType { component, rows: number(rows)?, columns: number(columns)?, layout });
        }
        let (prefix, rows) = text.split_once("vec")?;
        let component = match prefix {
            "" => Component::Float(32),
            "i" => Component::Int(32),
            "u" => Component::Uint(32),
            "d" => Component::Float(64),
            "f16" => Component::Float(16),
            "i8" => Component::Int(8),
            "u8" => Component::Uint(8),
            "i16" => Component::Int(16),
            "u16" => Component::Uint(16),
            "i64" => Component::Int(64),
            "u64" => Component::Uint(64),
            _ => return None,
        };
        Some(DataType { component, rows: number(rows)?, columns: 1, layout })
    }

    /// A texel format as `R16G16_SFLOAT` whose components all have one width of 8 bits or more. Normalized components are written as
    /// the integers that they hold.
    pub(super) fn of_format(text: &str) -> Option<DataType> {
        let (components, numeric) = text.split_once('_')?;
        let mut rows = 0;
        let mut width = None;
        for component in components.split(|c: char| c.is_ascii_uppercase()).skip(1) {
            let bits: u8 = component.parse().ok()?;
            if *width.get_or_insert(bits) != bits {
                return None;
            }
            rows += 1;
        }
        let bits = width.filter(|bits| matches!(bits, 8 | 16 | 32 | 64))?;
        let component = match numeric {
            "UINT" | "UNORM" => Component::Uint(bits),
            "SINT" | "SNORM" => Component::Int(bits),
            "SFLOAT" if bits > 8 => Component::Float(bits),
            _ => return None,
        };
        Some(DataType { component, rows, columns: 1, layout: Layout::Packed })
    }

    /// Bytes from a column to the next one.
    pub(super) fn column_stride(&self) -> usize {
        let size = self.component.bytes();
        match self.layout {
            Layout::Packed => size * self.rows,
            Layout::Std430 => size * if self.rows == 3 { 4 } else { self.rows },
            Layout::Std140 => (size * if self.rows == 3 { 4 } else { self.rows }).next_multiple_of(16),
        }
    }

    /// Bytes from an element to the next one.
    pub fn stride(&self) -> usize {
        self.column_stride() * self.columns
    }

    /// The format of its elements as texels, by its components.
    pub(super) fn format(&self) -> Option<String> {
        let (bits, numeric) = match self.component {
            Component::Int(bits) => (bits, "SINT"),
            Component::Uint(bits) => (bits, "UINT"),
            Component::Float(bits) => (bits, "SFLOAT"),
        };
        let letters = "RGBA".chars().take(self.rows);
        let components: String = letters.map(|letter| format!("{letter}{bits}")).collect();
        (self.columns == 1).then(|| format!("{components}_{numeric}"))
    }

    /// Components of an element.
    pub fn components(&self) -> usize {
        self.rows * self.columns
    }
}
