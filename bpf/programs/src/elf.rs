//! As much of ELF (System V gABI, 64 bits, little endian) as object files of BPF programs need:
//! sections by name, and symbols.

/// Machine number of BPF (`EM_BPF`).
const BPF: u16 = 247;
/// Type of a section of symbols (`SHT_SYMTAB`).
const SYMBOLS: u32 = 2;
/// Type of a section that takes no room in the file (`SHT_NOBITS`).
const EMPTY: u32 = 8;

/// Why a file is no object file of BPF programs; completes "the file ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// Another format altogether.
    NotElf,
    /// Made for another machine.
    Machine,
    /// Offsets that lead out of the file.
    Damaged,
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    kind: u32,
    /// Where its content begins in the file.
    pub(crate) offset: usize,
    pub(crate) size: usize,
    link: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    /// Index of the section in which it lies.
    pub(crate) section: usize,
    /// Where it begins in that section.
    pub(crate) value: usize,
    pub(crate) size: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Elf {
    pub(crate) sections: Vec<Section>,
    pub(crate) symbols: Vec<Symbol>,
}

/// The little-endian integer of `N` bytes at `offset`.
fn integer<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    integer(bytes, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    integer(bytes, offset).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    integer(bytes, offset).map(u64::from_le_bytes)
}

fn size_at(bytes: &[u8], offset: usize) -> Option<usize> {
    usize::try_from(u64_at(bytes, offset)?).ok()
}

/// The text at `offset` that ends with a zero.
pub(crate) fn text_at(bytes: &[u8], offset: usize) -> Option<String> {
    let text = bytes.get(offset..)?;
    let end = text.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&text[..end]).into_owned())
}

impl Elf {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Elf, Foreign> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err(Foreign::NotElf);
        }
        // 64 bits, little endian, machine.
        let ours = bytes.get(4..6) == Some(&[2, 1]) && u16_at(bytes, 18) == Some(BPF);
        if !ours {
            return Err(Foreign::Machine);
        }
        Elf::tables(bytes).ok_or(Foreign::Damaged)
    }

    fn tables(bytes: &[u8]) -> Option<Elf> {
        let table = size_at(bytes, 40)?;
        let entry = usize::from(u16_at(bytes, 58)?);
        let count = usize::from(u16_at(bytes, 60)?);
        let names = usize::from(u16_at(bytes, 62)?);
        let mut sections = Vec::with_capacity(count);
        let mut at_names = Vec::with_capacity(count);
        for index in 0..count {
            let header = table.checked_add(index.checked_mul(entry)?)?;
            let section = Section {
                name: String::new(),
                kind: u32_at(bytes, header.checked_add(4)?)?,
                offset: size_at(bytes, header.checked_add(24)?)?,
                size: size_at(bytes, header.checked_add(32)?)?,
                link: u32_at(bytes, header.checked_add(40)?)? as usize,
            };
            at_names.push(u32_at(bytes, header)? as usize);
            sections.push(section);
        }
        let mut elf = Elf {
            sections,
            symbols: Vec::new(),
        };
        let texts = Elf::content(bytes, elf.sections.get(names)?)?;
        let named = at_names.into_iter().map(|at| text_at(texts, at));
        let named: Option<Vec<String>> = named.collect();
        for (section, name) in elf.sections.iter_mut().zip(named?) {
            section.name = name;
        }
        elf.symbols = elf.symbols(bytes)?;
        Some(elf)
    }

    fn symbols(&self, bytes: &[u8]) -> Option<Vec<Symbol>> {
        let Some(section) = self.sections.iter().find(|it| it.kind == SYMBOLS) else {
            return Some(Vec::new());
        };
        let texts = Elf::content(bytes, self.sections.get(section.link)?)?;
        let table = Elf::content(bytes, section)?;
        let symbol = |entry: &[u8]| {
            Some(Symbol {
                name: text_at(texts, u32_at(entry, 0)? as usize)?,
                section: usize::from(u16_at(entry, 6)?),
                value: size_at(entry, 8)?,
                size: size_at(entry, 16)?,
            })
        };
        table.chunks_exact(24).map(symbol).collect()
    }

    /// What a section holds.
    pub(crate) fn content<'a>(bytes: &'a [u8], section: &Section) -> Option<&'a [u8]> {
        if section.kind == EMPTY {
            return Some(&[]);
        }
        bytes.get(section.offset..section.offset.checked_add(section.size)?)
    }

    /// Index of the section called `name`.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.sections
            .iter()
            .position(|section| section.name == name)
    }
}
