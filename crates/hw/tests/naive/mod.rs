//! Reads the facts the slow way: walks every definition for each question. Shares nothing with the compiled tables but
//! the model, so that the two check each other.

use std::collections::HashMap;
use unwedge_hw::model::*;

/// The definitions reachable from one file, and what is selected.
pub struct Naive<'m> {
    items: Vec<&'m FactsItem>,
    by_name: HashMap<&'m str, Vec<&'m FactsItem>>,
    /// Enum → position of the selected value.
    pub selected: HashMap<String, usize>,
}

/// What a definition inherits from those around it.
#[derive(Clone, Default)]
pub struct Inherited<'m> {
    prefix: Option<&'m str>,
    varset: Option<&'m str>,
}

/// What stands at an offset.
pub struct Found<'m> {
    pub name: String,
    pub width: u32,
    /// `None` for a hole.
    pub ty: Option<(&'m TypeSpec, Inherited<'m>)>,
}

impl<'m> Naive<'m> {
    pub fn new(facts: &'m DbFacts, roots: &[&str], chip: &str) -> Naive<'m> {
        let mut naive = Naive { items: Vec::new(), by_name: HashMap::new(), selected: HashMap::new() };
        let mut seen = Vec::new();
        for root in roots {
            naive.add(facts, root, &mut seen);
        }
        for item in &naive.items {
            let name = match item {
                FactsItem::Enum(en) => &en.name,
                FactsItem::Bitset(set) => &set.name,
                FactsItem::Domain(domain) => &domain.name,
                _ => continue,
            };
            naive.by_name.entry(name).or_default().push(item);
        }
        if let Some(at) = naive.values("chip").iter().position(|v| v.name == chip) {
            naive.selected.insert("chip".to_string(), at);
        }
        naive
    }

    fn add(&mut self, facts: &'m DbFacts, name: &str, seen: &mut Vec<String>) {
        if seen.iter().any(|s| s == name) {
            return;
        }
        seen.push(name.to_string());
        for item in facts.files.iter().filter(|f| f.name == name).flat_map(|f| &f.items) {
            match item {
                FactsItem::Import(name) => self.add(facts, name, seen),
                item => self.items.push(item),
            }
        }
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &'m FactsItem> {
        self.by_name.get(name).into_iter().flatten().copied()
    }

    fn enums(&self, name: &str) -> impl Iterator<Item = &'m EnumItem> {
        self.named(name).filter_map(|item| match item {
            FactsItem::Enum(en) => Some(en),
            _ => None,
        })
    }

    fn bitsets(&self, name: &str) -> impl Iterator<Item = &'m BitsetItem> {
        self.named(name).filter_map(|item| match item {
            FactsItem::Bitset(set) => Some(set),
            _ => None,
        })
    }

    pub fn domains(&self, name: &str) -> Vec<&'m DomainItem> {
        let find = |item: &'m FactsItem| match item {
            FactsItem::Domain(domain) => Some(domain),
            _ => None,
        };
        self.named(name).filter_map(find).collect()
    }

    pub fn values(&self, name: &str) -> Vec<&'m EnumValue> {
        self.enums(name).flat_map(|en| &en.values).collect()
    }

    /// `None`: does not exist for what is selected.
    fn inside(&self, outer: &Inherited<'m>, select: &'m Select) -> Option<Inherited<'m>> {
        let mut own = outer.clone();
        if let Some(prefix) = &select.prefix {
            own.prefix = Some(prefix.as_str()).filter(|p| self.enums(p).next().is_some());
        }
        own.varset = match &select.varset {
            Some(varset) => Some(varset),
            None if own.prefix.is_some() => None,
            None => outer.varset,
        };
        let Some(variants) = &select.variants else { return Some(own) };
        let varset = own.varset.or(own.prefix).expect("variants without a varset");
        let Some(&selected) = self.selected.get(varset) else { return Some(own) };
        let names = self.values(varset);
        let position = |name: &str| names.iter().position(|v| v.name == name).expect("unknown variant");
        let exists = variants.split(' ').any(|range| match range.split_once('-') {
            None => position(range) == selected,
            Some((first, "")) => position(first) <= selected,
            Some((first, last)) => position(first) <= selected && selected <= position(last),
        });
        exists.then_some(own)
    }

    /// The first of several domains that has something at the offset.
    pub fn at(&self, domains: &[&str], offset: u64) -> Option<Found<'m>> {
        domains.iter().find_map(|name| {
            let mut inherited = None;
            self.domains(name).into_iter().find_map(|domain| {
                let select = inherited.get_or_insert(&domain.select);
                let inherited = self.inside(&Inherited::default(), select)?;
                self.search(&domain.elems, &inherited, offset, "")
            })
        })
    }

    fn search(
        &self,
        elems: &'m [DomainElem],
        outer: &Inherited<'m>,
        offset: u64,
        index: &str,
    ) -> Option<Found<'m>> {
        elems.iter().find_map(|elem| match elem {
            DomainElem::Reg(reg) => {
                let units = u64::from(reg.width / 32);
                let stride = if reg.length == 1 { reg.stride } else { reg.stride.max(units) };
                let from = offset.checked_sub(reg.offset)?;
                let i = from.checked_div(stride).unwrap_or(0);
                let unit = from - i * stride;
                if unit >= units || i >= reg.length {
                    return None;
                }
                let own = self.inside(outer, &reg.select)?;
                let mut name = format!("{}{index}", reg.name);
                if reg.length != 1 {
                    name += &format!("[{}]", hex(i));
                }
                let address = reg.ty.name.as_deref().is_some_and(|t| t == "address" || t == "waddress");
                match unit {
                    0 => {}
                    1 if address => name += "_HI",
                    _ => name += &format!("+{}", hex(unit)),
                }
                Some(Found { name, width: reg.width, ty: Some((&reg.ty, own)) })
            }
            DomainElem::Block(block) => self.search_block(block, outer, offset, index),
            DomainElem::Use(_) => panic!("Adreno's facts have no groups"),
        })
    }

    fn search_block(
        &self,
        block: &'m RegBlock,
        outer: &Inherited<'m>,
        offset: u64,
        index: &str,
    ) -> Option<Found<'m>> {
        let end = block.offset + block.length * block.stride;
        if offset < block.offset || (block.kind == RegBlockKind::Array && offset >= end) {
            return None;
        }
        let own = self.inside(outer, &block.select)?;
        for i in 0..block.length {
            let Some(within) = offset.checked_sub(block.offset + i * block.stride) else { continue };
            let own_index = if block.length == 1 { String::new() } else { format!("[{}]", hex(i)) };
            match block.kind {
                RegBlockKind::Array if within < block.stride => {
                    let name = format!("{}{index}{own_index}", block.name.as_deref().unwrap_or_default());
                    return Some(match self.search(&block.elems, &own, within, "") {
                        Some(found) => Found { name: format!("{name}.{}", found.name), ..found },
                        None => Found { name: format!("{name}+{}", hex(within)), width: 0, ty: None },
                    });
                }
                RegBlockKind::Array => {}
                RegBlockKind::Stripe => {
                    assert!(block.name.is_none(), "Adreno's stripes have no names");
                    let found = self.search(&block.elems, &own, within, &format!("{index}{own_index}"));
                    if found.is_some() {
                        return found;
                    }
                }
            }
        }
        None
    }

    /// rnn's text of a value.
    pub fn text(&mut self, ty: &'m TypeSpec, inherited: &Inherited<'m>, raw: u64) -> String {
        let mask = bits(ty);
        let value = ((raw & mask) >> ty.low) << ty.shr;
        let width = ty.high - ty.low + 1;
        let name = ty.name.as_deref().unwrap_or(match (&ty.fields[..], &ty.values[..]) {
            ([_, ..], _) => "bitfield",
            (_, [_, ..]) => "enum",
            _ if (ty.low, ty.high) == (0, 0) => "boolean",
            _ => "hex",
        });
        let negative = value >> (width - 1) & 1 == 1;
        let magnitude = (1u128 << width).wrapping_sub(value.into()) as u64;
        let scale = 2f64.powi(ty.radix.unwrap_or(0) as i32);
        let mut text = match name {
            "uint" => value.to_string(),
            "int" if negative => format!("-{magnitude}"),
            "int" => value.to_string(),
            "boolean" if value < 2 => ["FALSE", "TRUE"][value as usize].to_string(),
            "fixed" if negative => format!("-{:.6}", magnitude as f64 / scale),
            "fixed" | "ufixed" => format!("{:.6}", value as f64 / scale),
            "float" if width == 32 => nan(f32::from_bits(value as u32).into()),
            "float" if width == 64 => nan(f64::from_bits(value)),
            "float" if width == 16 => half(value),
            "a3xx_regid" => format!("r{}.{}", value >> 2, ["x", "y", "z", "w"][(value & 3) as usize]),
            _ if name == "enum" || self.enums(name).next().is_some() => {
                let outer = match self.enums(name).next().filter(|en| !en.inline) {
                    Some(en) => self.inside(&Inherited::default(), &en.select),
                    None => Some(inherited.clone()),
                };
                let values: Vec<_> =
                    if name == "enum" { ty.values.iter().collect() } else { self.values(name) };
                let matches = |v: &&&EnumValue| {
                    v.value == Some(value)
                        && outer.as_ref().is_some_and(|outer| self.inside(outer, &v.select).is_some())
                };
                match values.iter().find(matches).map(|v| v.name.clone()) {
                    Some(found) => {
                        if ty.addvariant {
                            let at = values.iter().position(|v| v.name == found).unwrap();
                            self.selected.insert(name.to_string(), at);
                        }
                        found
                    }
                    None => hex(value),
                }
            }
            _ if name == "bitfield" || self.bitsets(name).next().is_some() => {
                let set = self.bitsets(name).next();
                let copied = self.bitsets(name).flat_map(|s| &s.fields);
                let mut fields: Vec<&BitField> = match set.filter(|s| !s.inline) {
                    Some(_) => copied.collect(),
                    None => ty.fields.iter().chain(copied).collect(),
                };
                let outer = match set.filter(|s| !s.inline) {
                    Some(set) => self.inside(&Inherited::default(), &set.select),
                    None => Some(inherited.clone()),
                };
                if set.is_none_or(|s| s.inline) {
                    for i in 0..fields.len() {
                        if let Some(j) = (0..i).find(|&j| !fields[j].ty.addvariant)
                            && fields[i].ty.addvariant
                        {
                            fields.swap(i, j);
                        }
                    }
                }
                return self.fields(&fields, &outer.unwrap_or_default(), value);
            }
            _ => hex(value),
        };
        if raw & !mask != 0 {
            text += &format!(" | {}", hex(raw & !mask));
        }
        text
    }

    fn fields(&mut self, fields: &[&'m BitField], outer: &Inherited<'m>, value: u64) -> String {
        let mut parts = Vec::new();
        let mut rest = value;
        for field in fields {
            let Some(own) = self.inside(outer, &field.select) else { continue };
            let mask = bits(&field.ty);
            let digits = field.name.strip_prefix("UNK").unwrap_or_default();
            let unknown = digits.starts_with(|c: char| c.is_ascii_digit());
            if unknown && value & mask == 0 {
                continue;
            }
            rest &= !mask;
            let ty = &field.ty;
            let untyped = ty.name.is_none() && ty.fields.is_empty() && ty.values.is_empty();
            let boolean = ty.name.as_deref() == Some("boolean") || (untyped && (ty.low, ty.high) == (0, 0));
            if boolean {
                parts.extend((value & mask != 0).then(|| field.name.clone()));
            } else if unknown && ty.name.as_deref() != Some("a3xx_regid") {
                parts.push(format!("{} = {}", field.name, hex(((value & mask) >> ty.low) << ty.shr)));
            } else {
                parts.push(format!("{} = {}", field.name, self.text(ty, &own, value & mask)));
            }
        }
        parts.extend((rest != 0).then(|| hex(rest)));
        format!("{{ {} }}", if parts.is_empty() { "0".to_string() } else { parts.join(" | ") })
    }
}

fn bits(ty: &TypeSpec) -> u64 {
    (u64::MAX >> (63 - (ty.high - ty.low))) << ty.low
}

fn hex(n: u64) -> String {
    if n == 0 { "0".to_string() } else { format!("{n:#x}") }
}

fn nan(f: f64) -> String {
    match f.is_nan() {
        true if f.is_sign_negative() => "-nan".to_string(),
        true => "nan".to_string(),
        false => format!("{f:.6}"),
    }
}

/// Normal numbers only: the denormal ones are another test's.
fn half(value: u64) -> String {
    let (sign, exponent, fraction) = (value >> 15, value >> 10 & 31, value & 1023);
    let single = match exponent {
        0 if fraction == 0 => 0,
        31 => 255 << 23 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    nan(f32::from_bits((sign << 31 | single) as u32).into())
}
