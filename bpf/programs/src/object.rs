//! The object file of a BPF congestion control: its name and constants, and changing both before it is loaded.
//!
//! A congestion control is a variable of the type `struct tcp_congestion_ops` in the section `.struct_ops.link` or
//! `.struct_ops`. Its position in the file follows from the symbols, the offsets of its members from the type
//! information. Nothing is loaded or run here.

use crate::btf::{Btf, integer_at, text_of};
use object::elf::{EM_BPF, FileHeader64};
use object::read::elf::{ElfFile64, ElfSymbol64, FileHeader};
use object::{LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _};

/// Bytes of a name in the kernel, with the zero at its end (`TCP_CA_NAME_MAX`).
const NAME_BYTES: usize = 16;
/// The kernel's type, to whose name libbpf allows appending `___` and any word.
const OPS: &str = "tcp_congestion_ops";
/// Ending of the name of a variable whose `cong_control` has the prototype of older kernels.
const OLD: &str = "_before_6_10";
/// Sections with tables of operations; those with a question mark are not loaded by default.
const SECTIONS: [&str; 4] = [
    ".struct_ops.link",
    ".struct_ops",
    "?.struct_ops.link",
    "?.struct_ops",
];
/// Licenses that are compatible with the kernel's (`license_is_gpl_compatible`).
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
    #[error(
        "this is not an object file (ELF); compile the C file with clang -O2 -g -target bpf -c"
    )]
    NotElf,
    /// An object file for another machine.
    #[error(
        "this object file is not made for little-endian BPF; compile the C file with clang -target bpf"
    )]
    Machine,
    /// Truncated or modified.
    #[error("the object file is damaged; compile it again")]
    Damaged,
    /// No type information.
    #[error(
        "the object file has no type information (.BTF); compile it with clang -g and strip it with llvm-strip -g only"
    )]
    NoTypes,
    /// No table of operations.
    #[error(
        "the object file contains no congestion control: it has no struct tcp_congestion_ops in a section .struct_ops.link"
    )]
    NoOps,
    /// A table of operations of something else.
    #[error("the object file contains a {0}, not a congestion control (struct tcp_congestion_ops)")]
    OtherOps(String),
    /// More than one.
    #[error(
        "the object file contains several congestion controls ({0}); put each into a separate file"
    )]
    Several(String),
    /// No name.
    #[error(
        "the congestion control in the object file has no name; set .name in its struct tcp_congestion_ops"
    )]
    NoName,
    /// A name that the kernel rejects.
    #[error(
        "the kernel rejects '{0}' as the name of a congestion control; use at most 15 letters, digits, dots and underscores"
    )]
    BadName(String),
    /// No license, or one that the kernel rejects.
    #[error(
        "the license of the object file is '{0}', but the kernel loads congestion controls only under one that is compatible with the GPL, such as \"GPL\" or \"Dual MIT/GPL\""
    )]
    License(String),
    /// A constant that does not exist.
    #[error("the object file has no constant '{0}' of 8 bytes in .rodata")]
    NoConstant(String),
}

type Elf<'a> = ElfFile64<'a, LittleEndian>;
type Symbol<'a, 'file> = ElfSymbol64<'a, 'file, LittleEndian>;

fn parse_elf(bytes: &[u8]) -> Result<Elf<'_>, ObjectError> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err(ObjectError::NotElf);
    }
    let header = FileHeader64::<LittleEndian>::parse(bytes);
    if header.is_ok_and(|header| header.e_machine(LittleEndian) == EM_BPF) {
        Elf::parse(bytes).map_err(|_| ObjectError::Damaged)
    } else {
        Err(ObjectError::Machine)
    }
}

/// A table of operations in the object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ops {
    /// Name of the variable, which is the name of the map as well.
    variable: String,
    /// Position in the file of the congestion control's name.
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
    /// Name, position in the file, position in the section.
    constants: Vec<(String, usize, usize)>,
}

impl Object {
    /// Examines the content of an object file.
    ///
    /// # Errors
    /// Any problem that would prevent loading and can be detected without the kernel.
    pub fn parse(bytes: &[u8]) -> Result<Object, ObjectError> {
        let elf = parse_elf(bytes)?;
        let types = elf.section_by_name(".BTF").ok_or(ObjectError::NoTypes)?;
        let types = types.data().map_err(|_| ObjectError::Damaged)?;
        let types = Btf::parse(types).ok_or(ObjectError::NoTypes)?;
        let mut all_tables = tables(&elf, &types)?;
        let name = one_name(bytes, &all_tables)?;
        let license = elf.section_by_name("license");
        let license = license.and_then(|section| section.data().ok());
        let license = text_of(license.unwrap_or_default());
        if !LICENSES.contains(&license.as_str()) {
            return Err(ObjectError::License(license));
        }
        let old = all_tables
            .iter()
            .position(|ops| ops.variable.ends_with(OLD));
        let old_ops = old
            .filter(|_| all_tables.len() > 1)
            .map(|at| all_tables.remove(at));
        Ok(Object {
            constants: constants(&elf),
            bytes: bytes.to_vec(),
            name,
            license,
            ops: all_tables.remove(0),
            old_ops,
        })
    }

    /// Its content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Name of the congestion control.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The license that it declares to the kernel.
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
        integer_at(&self.bytes, *at).map(u64::from_le_bytes)
    }

    /// The value of a constant in the content of the map of constants (`.rodata`).
    pub fn constant_in(&self, rodata: &[u8], name: &str) -> Option<u64> {
        let (.., at) = self.constants.iter().find(|(known, ..)| known == name)?;
        integer_at(rodata, *at).map(u64::from_le_bytes)
    }

    /// Changes a constant.
    ///
    /// # Errors
    /// No constant has that name.
    pub fn set_constant(&mut self, name: &str, value: u64) -> Result<(), ObjectError> {
        let place = self.constants.iter().find(|(known, ..)| known == name);
        let Some((_, at, _)) = place else {
            return Err(ObjectError::NoConstant(name.to_owned()));
        };
        self.bytes[*at..*at + 8].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// Changes the name under which the kernel will register it.
    ///
    /// # Errors
    /// The kernel rejects such names.
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

    /// The tables of operations: the one to load and the one to skip, depending on whether the kernel's `cong_control`
    /// has the old prototype.
    pub fn tables(&self, old_kernel: bool) -> (&str, Option<&str>) {
        match &self.old_ops {
            Some(old) if old_kernel => (&old.variable, Some(&self.ops.variable)),
            Some(old) => (&self.ops.variable, Some(&old.variable)),
            None => (&self.ops.variable, None),
        }
    }
}

/// Rejects names that the kernel rejects (`bpf_obj_name_cpy`).
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

/// Position in the file of the `size` bytes at a symbol; `None` if they are not inside its section.
fn place(elf: &Elf, symbol: &Symbol, size: usize) -> Option<usize> {
    let section = elf.section_by_index(symbol.section_index()?).ok()?;
    let (offset, length) = section.file_range()?;
    let end = symbol.address().checked_add(size as u64)?;
    let at = usize::try_from(offset.checked_add(symbol.address())?).ok()?;
    (end <= length && at.checked_add(size)? <= elf.data().len()).then_some(at)
}

/// The congestion controls in the object.
fn tables(elf: &Elf, types: &Btf) -> Result<Vec<Ops>, ObjectError> {
    let mut all_tables = Vec::new();
    for name in SECTIONS {
        let Some(section) = elf.section_by_name(name) else {
            continue;
        };
        for (variable, kind, members) in types.structures(name).ok_or(ObjectError::NoTypes)? {
            if kind.split("___").next() != Some(OPS) {
                return Err(ObjectError::OtherOps(kind));
            }
            let member = members.iter().find(|member| member.name == "name");
            let Some(member) = member else {
                return Err(ObjectError::NoName);
            };
            let is_variable = |symbol: &Symbol| {
                symbol.section_index() == Some(section.index())
                    && symbol.name().is_ok_and(|name| name == variable)
            };
            let at = elf
                .symbols()
                .find(is_variable)
                .and_then(|symbol| place(elf, &symbol, member.offset + NAME_BYTES))
                .ok_or(ObjectError::Damaged)?;
            all_tables.push(Ops {
                variable,
                name_at: at + member.offset,
            });
        }
    }
    Ok(all_tables)
}

/// The common name of all tables, which are one congestion control in at most two forms.
fn one_name(bytes: &[u8], all_tables: &[Ops]) -> Result<String, ObjectError> {
    let name = |ops: &Ops| text_of(&bytes[ops.name_at..ops.name_at + NAME_BYTES]);
    let Some(first) = all_tables.first() else {
        return Err(ObjectError::NoOps);
    };
    let old = all_tables.iter().filter(|ops| ops.variable.ends_with(OLD));
    if all_tables.len() > 1 && !(all_tables.len() == 2 && old.count() == 1) {
        let names: Vec<String> = all_tables.iter().map(name).collect();
        return Err(ObjectError::Several(names.join(", ")));
    }
    let name = name(first);
    check_name(&name)?;
    Ok(name)
}

/// Name, position in the file and position in the section of each constant of 8 bytes.
fn constants(elf: &Elf) -> Vec<(String, usize, usize)> {
    let Some(section) = elf.section_by_name(".rodata") else {
        return Vec::new();
    };
    let constant = |symbol: Symbol| {
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        let is_ours = symbol.section_index() == Some(section.index()) && symbol.size() == 8;
        let at = is_ours.then(|| place(elf, &symbol, 8))??;
        Some((name.to_owned(), at, usize::try_from(symbol.address()).ok()?))
    };
    elf.symbols().filter_map(constant).collect()
}
