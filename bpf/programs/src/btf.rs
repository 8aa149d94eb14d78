//! The part of BTF, the kernel's format of type information (Linux Documentation/bpf/btf.rst), that is needed to find
//! the members of a structure.

const MAGIC: u16 = 0xeb9f;

const STRUCT: u32 = 4;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const TYPE_TAG: u32 = 18;

/// Bytes that follow the 12-byte header of each type, by its kind and number of members.
fn extra(kind: u32, members: usize) -> Option<usize> {
    Some(match kind {
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections of data, enumerations of 64 bits.
        4 | 5 | 15 | 19 => 12 * members,
        // Enumerations, prototypes of functions.
        6 | 13 => 8 * members,
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

/// The bytes of an integer at `offset`.
pub(crate) fn integer_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    integer_at(bytes, offset).map(u32::from_le_bytes)
}

/// The text at `offset` that ends with a zero.
fn text_at(bytes: &[u8], offset: usize) -> Option<String> {
    let text = bytes.get(offset..)?;
    text.contains(&0).then(|| text_of(text))
}

/// The text at the beginning of `bytes`, up to a zero or to their end.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

struct Type {
    /// Its start.
    at: usize,
    kind: u32,
    members: usize,
}

pub(crate) struct Btf<'a> {
    types: Vec<Type>,
    table: &'a [u8],
    texts: &'a [u8],
}

/// A member of a structure.
pub(crate) struct Member {
    pub(crate) name: String,
    /// Bytes from the beginning of the structure.
    pub(crate) offset: usize,
}

impl<'a> Btf<'a> {
    /// Reads the content of a section `.BTF`; `None` if it is damaged or of a newer version.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Btf<'a>> {
        if integer_at(bytes, 0).map(u16::from_le_bytes)? != MAGIC {
            return None;
        }
        let header = u32_at(bytes, 4)? as usize;
        let part = |at: usize| {
            let begin = header.checked_add(u32_at(bytes, at)? as usize)?;
            bytes.get(begin..begin.checked_add(u32_at(bytes, at + 4)? as usize)?)
        };
        let (table, texts) = (part(8)?, part(16)?);
        let (mut types, mut at) = (Vec::new(), 0);
        while at < table.len() {
            let info = u32_at(table, at + 4)?;
            let (kind, members) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            types.push(Type { at, kind, members });
            at += 12 + extra(kind, members)?;
        }
        Some(Btf {
            types,
            table,
            texts,
        })
    }

    fn get(&self, id: u32) -> Option<&Type> {
        // The number 0 is void.
        self.types.get((id as usize).checked_sub(1)?)
    }

    fn name(&self, candidate: &Type) -> Option<String> {
        text_at(self.texts, u32_at(self.table, candidate.at)? as usize)
    }

    /// The type behind names and qualifiers.
    fn resolve(&self, mut id: u32) -> Option<&Type> {
        // A chain longer than the number of types is circular.
        for _ in 0..=self.types.len() {
            let candidate = self.get(id)?;
            if !matches!(candidate.kind, TYPEDEF | VOLATILE | CONST | TYPE_TAG) {
                return Some(candidate);
            }
            id = u32_at(self.table, candidate.at + 8)?;
        }
        None
    }

    /// The variables of the data section called `section` that are structures: name of the variable,
    /// name of its type, members.
    pub(crate) fn structures(&self, section: &str) -> Option<Vec<(String, String, Vec<Member>)>> {
        let list = self.types.iter().find(|candidate| {
            candidate.kind == DATASEC && self.name(candidate).is_some_and(|name| name == section)
        })?;
        let mut all = Vec::new();
        for index in 0..list.members {
            let variable = self.get(u32_at(self.table, list.at + 12 + 12 * index)?)?;
            if variable.kind != VAR {
                return None;
            }
            let kind = self.resolve(u32_at(self.table, variable.at + 8)?)?;
            if kind.kind == STRUCT {
                all.push((self.name(variable)?, self.name(kind)?, self.members(kind)?));
            }
        }
        Some(all)
    }

    fn members(&self, kind: &Type) -> Option<Vec<Member>> {
        let member = |index: usize| {
            let at = kind.at + 12 + 12 * index;
            // The upper eight bits are the width of a bit field, if there is one.
            let bits = u32_at(self.table, at + 8)? & 0x00ff_ffff;
            Some(Member {
                name: text_at(self.texts, u32_at(self.table, at)? as usize)?,
                offset: bits as usize / 8,
            })
        };
        (0..kind.members).map(member).collect()
    }
}
