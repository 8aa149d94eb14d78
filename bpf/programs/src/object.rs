//! The object file of a BPF congestion control: what it is called, which constants it has, and how
//! to change both before it is loaded.
//!
//! A congestion control is a variable of the type `struct tcp_congestion_ops` in the section
//! `.struct_ops.link` or `.struct_ops`. Where it lies in the file is told by the symbols, where its
//! members lie by the type information. Nothing is loaded or run here.

use crate::btf::Btf;
use crate::elf::{Elf, Foreign, Symbol, text_at, u64_at};

/// Bytes of a name in the kernel, with the zero at its end (`TCP_CA_NAME_MAX`).
const NAME_BYTES: usize = 16;
/// The kernel's type, which libbpf lets end with `___` and a word of one's own.
const OPS: &str = "tcp_congestion_ops";
/// How the name of a variable ends whose `cong_control` has the prototype of older kernels.
const OLD: &str = "_before_6_10";
/// Sections that hold tables of operations; with the question mark they are not loaded by default.
const SECTIONS: [&str; 4] = [
    ".struct_ops.link",
    ".struct_ops",
    "?.struct_ops.link",
    "?.struct_ops",
];
/// What the kernel takes for compatible with its own license (`license_is_gpl_compatible`).
const LICENSES: [&str; 6] = [
    "GPL",
    "GPL v2",
    "GPL and additional rights",
    "Dual BSD/GPL",
    "Dual MIT/GPL",
    "Dual MPL/GPL",
];

/// Why a file is not the object of a congestion control. Completes "PATH: ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Not an object file.
    #[error("this is no object file (ELF); compile the C file with clang -O2 -g -target bpf -c")]
    NotElf,
    /// An object file for another machine.
    #[error(
        "this object file is not made for little-endian BPF; compile the C file with clang -target bpf"
    )]
    Machine,
    /// Cut off or changed.
    #[error("the object file is damaged; compile it again")]
    Damaged,
    /// No type information.
    #[error(
        "the object file has no type information (.BTF); compile it with clang -g and strip it with llvm-strip -g only"
    )]
    NoTypes,
    /// No table of operations.
    #[error(
        "the object file holds no congestion control: there is no struct tcp_congestion_ops in a section .struct_ops.link"
    )]
    NoOps,
    /// A table of operations of something else.
    #[error("the object file holds a {0}, not a congestion control (struct tcp_congestion_ops)")]
    OtherOps(String),
    /// More than one.
    #[error(
        "the object file holds several congestion controls ({0}); put each into a file of its own"
    )]
    Several(String),
    /// No name.
    #[error(
        "the congestion control in the object file has no name; set .name in its struct tcp_congestion_ops"
    )]
    NoName,
    /// A name that the kernel refuses.
    #[error(
        "the kernel refuses '{0}' as the name of a congestion control; write at most 15 letters, digits, dots and underscores"
    )]
    BadName(String),
    /// No license, or one that the kernel refuses.
    #[error(
        "the license of the object file is '{0}', but the kernel loads congestion controls only under one that is compatible with the GPL, such as \"GPL\" or \"Dual MIT/GPL\""
    )]
    License(String),
    /// A constant that is not there.
    #[error("the object file has no constant '{0}' of 8 bytes in .rodata")]
    NoConstant(String),
}

impl From<Foreign> for ObjectError {
    fn from(foreign: Foreign) -> Self {
        match foreign {
            Foreign::NotElf => ObjectError::NotElf,
            Foreign::Machine => ObjectError::Machine,
            Foreign::Damaged => ObjectError::Damaged,
        }
    }
}

/// A table of operations in the object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ops {
    /// Name of the variable, which is the name of the map as well.
    variable: String,
    /// Where in the file the congestion control's name lies.
    name_at: usize,
}

/// An object file, examined.
#[derive(Clone, Debug)]
pub struct Object {
    bytes: Vec<u8>,
    name: String,
    license: String,
    ops: Ops,
    old_ops: Option<Ops>,
    /// Name, place in the file, place in the section.
    constants: Vec<(String, usize, usize)>,
}

impl Object {
    /// Examines the content of an object file.
    ///
    /// # Errors
    /// Whatever would keep the kernel from loading it and can be seen without the kernel.
    pub fn parse(bytes: &[u8]) -> Result<Object, ObjectError> {
        let elf = Elf::parse(bytes)?;
        let types = elf.find(".BTF").ok_or(ObjectError::NoTypes)?;
        let types = Elf::content(bytes, &elf.sections[types]);
        let types = Btf::parse(types.ok_or(ObjectError::Damaged)?).ok_or(ObjectError::NoTypes)?;
        let mut found = tables(bytes, &elf, &types)?;
        let name = one_name(bytes, &found)?;
        let license = license(bytes, &elf);
        if !LICENSES.contains(&license.as_str()) {
            return Err(ObjectError::License(license));
        }
        let old = found.iter().position(|ops| ops.variable.ends_with(OLD));
        let old_ops = old.filter(|_| found.len() > 1).map(|at| found.remove(at));
        Ok(Object {
            constants: constants(bytes, &elf),
            bytes: bytes.to_vec(),
            name,
            license,
            ops: found.remove(0),
            old_ops,
        })
    }

    /// Its content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the congestion control calls itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The license that it tells the kernel.
    pub fn license(&self) -> &str {
        &self.license
    }

    /// Names of its constants of 8 bytes.
    pub fn constants(&self) -> impl Iterator<Item = &str> {
        self.constants.iter().map(|(name, ..)| name.as_str())
    }

    /// The value of a constant as compiled or set.
    pub fn constant(&self, name: &str) -> Option<u64> {
        let (_, at, _) = self.constants.iter().find(|(known, ..)| known == name)?;
        u64_at(&self.bytes, *at)
    }

    /// The value of a constant in the content of the map of constants (`.rodata`).
    pub fn constant_in(&self, rodata: &[u8], name: &str) -> Option<u64> {
        let (.., at) = self.constants.iter().find(|(known, ..)| known == name)?;
        u64_at(rodata, *at)
    }

    /// Changes a constant.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn set_constant(&mut self, name: &str, value: u64) -> Result<(), ObjectError> {
        let place = self.constants.iter().find(|(known, ..)| known == name);
        let Some((_, at, _)) = place else {
            return Err(ObjectError::NoConstant(name.to_owned()));
        };
        self.bytes[*at..*at + 8].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// Changes the name under which it will be known to the kernel.
    ///
    /// # Errors
    /// The kernel refuses such names.
    pub fn set_name(&mut self, name: &str) -> Result<(), ObjectError> {
        check_name(name)?;
        for ops in std::iter::once(&self.ops).chain(&self.old_ops) {
            let place = &mut self.bytes[ops.name_at..ops.name_at + NAME_BYTES];
            place.fill(0);
            place[..name.len()].copy_from_slice(name.as_bytes());
        }
        name.clone_into(&mut self.name);
        Ok(())
    }

    /// The tables of operations: the one to load and the one to leave, on a kernel whose
    /// `cong_control` has the old prototype or not.
    pub fn tables(&self, old_kernel: bool) -> (&str, Option<&str>) {
        match &self.old_ops {
            Some(old) if old_kernel => (&old.variable, Some(&self.ops.variable)),
            Some(old) => (&self.ops.variable, Some(&old.variable)),
            None => (&self.ops.variable, None),
        }
    }
}

/// Refuses names that the kernel refuses (`bpf_obj_name_cpy`).
fn check_name(name: &str) -> Result<(), ObjectError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    if name.is_empty() {
        return Err(ObjectError::NoName);
    }
    if name.len() >= NAME_BYTES || !name.bytes().all(allowed) {
        return Err(ObjectError::BadName(name.to_owned()));
    }
    Ok(())
}

/// Where a symbol's content lies in the file; `None` if that is not inside of it.
fn place(elf: &Elf, symbol: &Symbol, size: usize, length: usize) -> Option<usize> {
    let section = elf.sections.get(symbol.section)?;
    let at = section.offset.checked_add(symbol.value)?;
    (symbol.value.checked_add(size)? <= section.size && at.checked_add(size)? <= length)
        .then_some(at)
}

/// The congestion controls in the object.
fn tables(bytes: &[u8], elf: &Elf, types: &Btf) -> Result<Vec<Ops>, ObjectError> {
    let mut found = Vec::new();
    for section in SECTIONS {
        let Some(index) = elf.find(section) else {
            continue;
        };
        let variables = types.structures(section).ok_or(ObjectError::NoTypes)?;
        for (variable, kind, members) in variables {
            if kind.split("___").next() != Some(OPS) {
                return Err(ObjectError::OtherOps(kind));
            }
            let member = members.iter().find(|member| member.name == "name");
            let Some(member) = member else {
                return Err(ObjectError::NoName);
            };
            let symbol = elf
                .symbols
                .iter()
                .find(|symbol| symbol.section == index && symbol.name == variable)
                .ok_or(ObjectError::Damaged)?;
            let inside = member.offset + NAME_BYTES;
            let at = place(elf, symbol, inside, bytes.len()).ok_or(ObjectError::Damaged)?;
            found.push(Ops {
                variable,
                name_at: at + member.offset,
            });
        }
    }
    Ok(found)
}

/// The name that all tables have, which are one congestion control in at most two forms.
fn one_name(bytes: &[u8], found: &[Ops]) -> Result<String, ObjectError> {
    let name = |ops: &Ops| {
        let place = &bytes[ops.name_at..ops.name_at + NAME_BYTES];
        text_at(place, 0).unwrap_or_else(|| String::from_utf8_lossy(place).into_owned())
    };
    let Some(first) = found.first() else {
        return Err(ObjectError::NoOps);
    };
    let old = found.iter().filter(|ops| ops.variable.ends_with(OLD));
    if found.len() > 1 && !(found.len() == 2 && old.count() == 1) {
        let names: Vec<String> = found.iter().map(name).collect();
        return Err(ObjectError::Several(names.join(", ")));
    }
    let name = name(first);
    check_name(&name)?;
    Ok(name)
}

fn license(bytes: &[u8], elf: &Elf) -> String {
    let section = elf.find("license").map(|index| &elf.sections[index]);
    let content = section.and_then(|section| Elf::content(bytes, section));
    let content = content.unwrap_or_default();
    text_at(content, 0).unwrap_or_else(|| String::from_utf8_lossy(content).into_owned())
}

fn constants(bytes: &[u8], elf: &Elf) -> Vec<(String, usize, usize)> {
    let Some(section) = elf.find(".rodata") else {
        return Vec::new();
    };
    let symbols = elf.symbols.iter();
    symbols
        .filter(|symbol| symbol.section == section && symbol.size == 8 && !symbol.name.is_empty())
        .filter_map(|symbol| {
            let at = place(elf, symbol, 8, bytes.len())?;
            Some((symbol.name.clone(), at, symbol.value))
        })
        .collect()
}
