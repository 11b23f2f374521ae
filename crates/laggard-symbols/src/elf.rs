//! `Elf`: an ELF file and its headers.

use crate::content::Content;
use crate::symbols::{Symbol, Symbols};
use crate::{Error, debug_file};
use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{
    CompressionHeader, Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable,
};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub(crate) type Header = FileHeader64<LittleEndian>;
pub(crate) const ENDIAN: LittleEndian = LittleEndian;

/// Maximum number of sections read. Linkers write fewer than a hundred.
const MOST_SECTIONS: usize = 1 << 16;
/// Maximum number of note segments read. Linkers write two or three.
const MOST_NOTES: usize = 16;
const LONGEST_SECTION_NAME: usize = 64;
/// Maximum unpacked size of a compressed section.
const LARGEST_UNPACKED: u64 = 2 << 30;

/// An ELF file. Opening it reads only the headers. Symbols and debug info are read on first use.
pub struct Elf {
    content: Content,
    path: Option<PathBuf>,
    is_64: bool,
    is_little_endian: bool,
    machine: u16,
    kind: Kind,
    build_id: Option<String>,
    interpreter: Option<String>,
    needed: Vec<String>,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    /// Address ranges of code, sorted.
    code: Vec<Range<u64>>,
    eh_frame: Option<Piece>,
    eh_frame_hdr: Option<Piece>,
    id: OnceLock<String>,
    symbols: OnceLock<Symbols>,
    debug: OnceLock<Option<Box<Elf>>>,
    supplement: OnceLock<Option<Box<Elf>>>,
    unpacked: OnceLock<Vec<(String, Vec<u8>)>>,
}

/// The type of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program at a fixed address.
    Program,
    /// A library or a position-independent program.
    Shared,
    /// An object file.
    Relocatable,
    /// A core dump.
    Core,
    /// Any other type.
    Other,
}

/// A loaded segment of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file.
    pub offset: u64,
    /// Size in the file.
    pub file_size: u64,
    /// Address in memory, without the bias.
    pub svma: u64,
    /// Size in memory.
    pub size: u64,
    /// Whether it is executable.
    pub executable: bool,
}

/// A section header.
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) svma: u64,
    pub(crate) size: u64,
    pub(crate) entry_size: u64,
    pub(crate) executable: bool,
    pub(crate) writable: bool,
    /// Range in the file; `None` if it has no content there.
    pub(crate) range: Option<Range<usize>>,
    compressed: bool,
}

/// Bytes of the file and the address they are mapped at.
#[derive(Clone)]
struct Piece {
    svma: u64,
    range: Range<usize>,
}

impl Elf {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Elf, Error> {
        let path = path.as_ref();
        let content = Content::open(path)
            .map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        Elf::new(content, Some(path.to_owned()), &path.display().to_string())
    }

    /// Reads a file from memory. `name` is used in messages.
    pub fn from_bytes(bytes: Vec<u8>, name: &str) -> Result<Elf, Error> {
        Elf::new(Content::Kept(bytes), None, name)
    }

    fn new(content: Content, path: Option<PathBuf>, name: &str) -> Result<Elf, Error> {
        let damaged = |what: &str| Error::Damaged { name: name.to_owned(), what: what.to_owned() };
        if !content.starts_with(&elf::ELFMAG) {
            return Err(Error::NotElf { name: name.to_owned() });
        }
        let ident: [u8; 20] =
            content.first_chunk().copied().ok_or_else(|| damaged("the ELF header is truncated"))?;
        let is_64 = ident[4] == elf::ELFCLASS64.0;
        let is_little_endian = ident[5] == elf::ELFDATA2LSB.0;
        let half = |at: usize| match is_little_endian {
            true => u16::from_le_bytes([ident[at], ident[at + 1]]),
            false => u16::from_be_bytes([ident[at], ident[at + 1]]),
        };
        let kind = match elf::FileType(half(16)) {
            elf::ET_EXEC => Kind::Program,
            elf::ET_DYN => Kind::Shared,
            elf::ET_REL => Kind::Relocatable,
            elf::ET_CORE => Kind::Core,
            _ => Kind::Other,
        };
        let machine = half(18);
        let mut elf = Elf {
            content,
            path,
            is_64,
            is_little_endian,
            machine,
            kind,
            build_id: None,
            interpreter: None,
            needed: vec![],
            segments: vec![],
            sections: vec![],
            code: vec![],
            eh_frame: None,
            eh_frame_hdr: None,
            id: OnceLock::new(),
            symbols: OnceLock::new(),
            debug: OnceLock::new(),
            supplement: OnceLock::new(),
            unpacked: OnceLock::new(),
        };
        if is_64 && is_little_endian {
            elf.read_headers().map_err(|error| damaged(&error.to_string()))?;
        }
        Ok(elf)
    }

    fn read_headers(&mut self) -> object::Result<()> {
        let data: &[u8] = &self.content;
        let header = Header::parse(data)?;
        let programs = header.program_headers(ENDIAN, data)?;
        // A file with missing or broken section headers can still run and be unwound.
        let table = header.sections(ENDIAN, data).unwrap_or_default();

        let segments = programs.iter().filter(|p| p.p_type(ENDIAN) == elf::PT_LOAD).map(segment);
        let segments: Vec<Segment> = segments.collect();
        let sections: Vec<Section> =
            table.iter().take(MOST_SECTIONS).filter_map(|s| section(s, &table, data)).collect();
        let interpreter =
            programs.iter().find_map(|p| p.interpreter(ENDIAN, data).ok().flatten()).map(text);
        let build_id = build_id(programs, &table, data);
        let needed = needed(programs, &segments, data);
        let hdr = programs.iter().find(|p| p.p_type(ENDIAN) == elf::PT_GNU_EH_FRAME);
        let eh_frame_hdr = hdr.and_then(|p| {
            let range = range(p.p_offset(ENDIAN), p.p_filesz(ENDIAN), data.len())?;
            Some(Piece { svma: p.p_vaddr(ENDIAN), range })
        });

        self.code = code(&segments, &sections);
        (self.segments, self.sections) = (segments, sections);
        (self.interpreter, self.build_id, self.needed) = (interpreter, build_id, needed);
        self.eh_frame_hdr = eh_frame_hdr;
        self.eh_frame = self.find_eh_frame();
        Ok(())
    }

    /// `.eh_frame` by its section header, or by the address in `.eh_frame_hdr`.
    fn find_eh_frame(&self) -> Option<Piece> {
        if let Some(section) = self.section(".eh_frame") {
            return Some(Piece { svma: section.svma, range: section.range.clone()? });
        }
        let (hdr_svma, hdr) = self.eh_frame_hdr()?;
        let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(hdr_svma);
        let hdr = gimli::EhFrameHdr::new(hdr, gimli::LittleEndian).parse(&bases, 8).ok()?;
        let svma = hdr.eh_frame_ptr().direct().ok()?;
        let (segment, start) = self.offset_of(svma)?;
        let end = segment.offset.checked_add(segment.file_size)?;
        let range = start..usize::try_from(end).ok()?.min(self.content.len());
        (!range.is_empty()).then_some(Piece { svma, range })
    }

    /// The path that was opened.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The whole content.
    pub fn bytes(&self) -> &[u8] {
        &self.content
    }

    /// The type of the file.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The machine number in the header (62 is x86-64, 183 is AArch64).
    pub fn machine(&self) -> u16 {
        self.machine
    }

    /// Whether addresses have 64 bits.
    pub fn is_64(&self) -> bool {
        self.is_64
    }

    /// Whether it is 64-bit x86-64 code, which can be unwound.
    pub fn is_x86_64(&self) -> bool {
        self.is_64 && self.is_little_endian && self.machine == elf::EM_X86_64.0
    }

    /// The build ID in hexadecimal, if there is one.
    pub fn build_id(&self) -> Option<&str> {
        self.build_id.as_deref()
    }

    /// The build ID, or `xxh3:` and a hash of the whole content if there is none.
    pub fn id(&self) -> &str {
        self.id.get_or_init(|| match &self.build_id {
            Some(id) => id.clone(),
            None => format!("xxh3:{:016x}", xxhash_rust::xxh3::xxh3_64(&self.content)),
        })
    }

    /// The requested loader.
    pub fn interpreter(&self) -> Option<&str> {
        self.interpreter.as_deref()
    }

    /// Names of the required libraries.
    pub fn needed(&self) -> &[String] {
        &self.needed
    }

    /// The loaded segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The executable segments.
    pub fn executable_segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.executable)
    }

    /// Whether a section of this name exists.
    pub fn has_section(&self, name: &str) -> bool {
        self.section(name).is_some_and(|section| section.range.is_some())
    }

    /// The content of a section as stored in the file, and its address.
    pub fn section_bytes(&self, name: &str) -> Option<(u64, &[u8])> {
        let section = self.section(name)?;
        Some((section.svma, self.content.get(section.range.clone()?)?))
    }

    /// The bytes mapped at an address, at most `size` and up to the end of the segment.
    pub fn bytes_at(&self, svma: u64, size: usize) -> Option<&[u8]> {
        let (segment, start) = self.offset_of(svma)?;
        let left = segment.file_size - (svma - segment.svma);
        let end = start.checked_add(size.min(usize::try_from(left).ok()?))?;
        self.content.get(start..end.min(self.content.len()))
    }

    /// The bias of a mapping of `offset` in this file at `start`: the value to subtract from a pc
    /// to get an svma.
    ///
    /// Only the *executable* segment is used. Tools that rewrite libraries let several segments
    /// share pages of the file, and then only one of them gives the right bias.
    pub fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        const PAGE: u64 = 4095;
        let holds = |segment: &&Segment| {
            let end = segment.offset.saturating_add(segment.file_size);
            segment.offset & !PAGE <= offset && offset < end
        };
        let segment = self
            .executable_segments()
            .filter(holds)
            .max_by_key(|segment| segment.offset & !PAGE == offset)?;
        let svma = segment.svma.wrapping_sub(segment.offset).wrapping_add(offset);
        Some(start.wrapping_sub(svma))
    }

    /// The function at an address, with its raw name. In a stripped extension module of Python, it
    /// is the name in Python.
    pub fn symbol(&self, svma: u64) -> Option<Symbol<'_>> {
        self.symbols().find(self, svma)
    }

    /// Start of the function without a symbol at an address. Only known in stripped extension
    /// modules of Python; callers can use it to merge the samples of such a function.
    pub fn unnamed_function(&self, svma: u64) -> Option<u64> {
        self.symbols().find_unnamed(svma).map(|range| range.start)
    }

    /// All named functions, by address.
    pub fn functions(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.symbols().iter(self)
    }

    /// Addresses of exported functions and data, by name.
    pub fn exported<const N: usize>(&self, names: [&str; N]) -> [Option<u64>; N] {
        crate::symbols::exported(self, names)
    }

    /// `.eh_frame` and its address.
    pub(crate) fn eh_frame(&self) -> Option<(u64, &[u8])> {
        let piece = self.eh_frame.as_ref()?;
        Some((piece.svma, self.content.get(piece.range.clone())?))
    }

    /// `.eh_frame_hdr` and its address.
    pub(crate) fn eh_frame_hdr(&self) -> Option<(u64, &[u8])> {
        let piece = self.eh_frame_hdr.as_ref()?;
        Some((piece.svma, self.content.get(piece.range.clone())?))
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The code section, or else the segment, that contains an address.
    pub(crate) fn code_around(&self, svma: u64) -> Option<&Range<u64>> {
        let at = self.code.partition_point(|range| range.start <= svma).checked_sub(1)?;
        self.code.get(at).filter(|range| range.contains(&svma))
    }

    /// The separate debug file, if there is one.
    pub(crate) fn debug_file(&self) -> Option<&Elf> {
        self.debug.get_or_init(|| debug_file::find(self).map(Box::new)).as_deref()
    }

    /// The file with the common parts of several debug files, if there is one.
    pub(crate) fn supplement(&self) -> Option<&Elf> {
        self.supplement.get_or_init(|| debug_file::supplement(self).map(Box::new)).as_deref()
    }

    /// The unpacked content of a section; empty if the section does not exist.
    pub(crate) fn unpacked(&self, name: &str) -> &[u8] {
        let Some((_, bytes)) = self.section_bytes(name) else { return &[] };
        if !self.section(name).is_some_and(|section| section.compressed) {
            return bytes;
        }
        let all = self.unpacked.get_or_init(|| {
            let packed = self.sections.iter().filter(|section| section.compressed);
            packed.filter_map(|s| Some((s.name.clone(), self.unpack(s)?))).collect()
        });
        all.iter().find(|(known, _)| known == name).map_or(&[], |(_, bytes)| bytes)
    }

    fn unpack(&self, section: &Section) -> Option<Vec<u8>> {
        let bytes = self.content.get(section.range.clone()?)?;
        let (header, rest) =
            object::pod::from_bytes::<elf::CompressionHeader64<LittleEndian>>(bytes).ok()?;
        let size = header.ch_size(ENDIAN);
        let limit = size.min(LARGEST_UNPACKED);
        let mut unpacked = vec![];
        match header.ch_type(ENDIAN) {
            elf::ELFCOMPRESS_ZLIB => {
                flate2::read::ZlibDecoder::new(rest).take(limit).read_to_end(&mut unpacked).ok()?
            }
            elf::ELFCOMPRESS_ZSTD => {
                let decoder = zstd::stream::read::Decoder::new(rest).ok()?;
                decoder.take(limit).read_to_end(&mut unpacked).ok()?
            }
            _ => return None,
        };
        (unpacked.len() as u64 == size).then_some(unpacked)
    }

    fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| Symbols::load(self))
    }

    fn offset_of(&self, svma: u64) -> Option<(&Segment, usize)> {
        let segment = self.segments.iter().find(|s| svma.wrapping_sub(s.svma) < s.file_size)?;
        let offset = segment.offset.checked_add(svma - segment.svma)?;
        Some((segment, usize::try_from(offset).ok()?))
    }
}

impl std::fmt::Debug for Elf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elf").field("path", &self.path).field("kind", &self.kind).finish()
    }
}

fn segment(header: &ProgramHeader64<LittleEndian>) -> Segment {
    Segment {
        offset: header.p_offset(ENDIAN),
        file_size: header.p_filesz(ENDIAN),
        svma: header.p_vaddr(ENDIAN),
        size: header.p_memsz(ENDIAN),
        executable: header.p_flags(ENDIAN).contains(elf::PF_X),
    }
}

fn section(
    header: &elf::SectionHeader64<LittleEndian>,
    table: &SectionTable<'_, Header>,
    data: &[u8],
) -> Option<Section> {
    let name = table.section_name(ENDIAN, header).ok()?;
    if name.is_empty() || name.len() > LONGEST_SECTION_NAME {
        return None;
    }
    let file_range = header.file_range(ENDIAN);
    Some(Section {
        name: text(name),
        svma: header.sh_addr(ENDIAN),
        size: header.sh_size(ENDIAN),
        entry_size: header.sh_entsize(ENDIAN),
        executable: header.sh_flags(ENDIAN).contains(elf::SHF_EXECINSTR),
        writable: header.sh_flags(ENDIAN).contains(elf::SHF_WRITE),
        range: file_range.and_then(|(offset, size)| range(offset, size, data.len())),
        compressed: header.sh_flags(ENDIAN).contains(elf::SHF_COMPRESSED),
    })
}

/// Code sections, or segments if there are none.
fn code(segments: &[Segment], sections: &[Section]) -> Vec<Range<u64>> {
    let range = |start: u64, size: u64| start..start.saturating_add(size);
    let sections = sections.iter().filter(|s| s.executable).map(|s| range(s.svma, s.size));
    let mut code: Vec<Range<u64>> = sections.collect();
    if code.is_empty() {
        let segments = segments.iter().filter(|s| s.executable);
        code.extend(segments.map(|s| range(s.svma, s.size)));
    }
    code.sort_unstable_by_key(|range| range.start);
    code
}

fn build_id(
    programs: &[ProgramHeader64<LittleEndian>],
    table: &SectionTable<'_, Header>,
    data: &[u8],
) -> Option<String> {
    let by_program = programs.iter().filter_map(|p| p.notes(ENDIAN, data).ok().flatten());
    let by_section = table.iter().filter_map(|s| s.notes(ENDIAN, data).ok().flatten());
    by_program.take(MOST_NOTES).chain(by_section.take(MOST_NOTES)).find_map(|mut notes| {
        while let Ok(Some(note)) = notes.next() {
            let is_id = note.n_type(ENDIAN) == elf::NT_GNU_BUILD_ID && note.name() == b"GNU";
            if is_id && !note.desc().is_empty() {
                return Some(note.desc().iter().map(|byte| format!("{byte:02x}")).collect());
            }
        }
        None
    })
}

/// The libraries in `PT_DYNAMIC`. Only the address of its string table is known.
fn needed(
    programs: &[ProgramHeader64<LittleEndian>],
    segments: &[Segment],
    data: &[u8],
) -> Vec<String> {
    let Some(dynamic) = programs.iter().find_map(|p| p.dynamic(ENDIAN, data).ok().flatten()) else {
        return vec![];
    };
    let value = |d: &elf::Dyn64<LittleEndian>| -> u64 { d.d_val(ENDIAN) };
    let strings = dynamic.iter().find(|d| d.d_tag(ENDIAN) == elf::DT_STRTAB).and_then(|d| {
        let segment = segments.iter().find(|s| value(d).wrapping_sub(s.svma) < s.file_size)?;
        let offset = segment.offset.checked_add(value(d) - segment.svma)?;
        data.get(usize::try_from(offset).ok()?..)
    });
    let Some(strings) = strings else { return vec![] };
    let wanted = dynamic.iter().filter(|d| d.d_tag(ENDIAN) == elf::DT_NEEDED);
    wanted.filter_map(|d| text_at(strings, value(d))).take(MOST_SECTIONS).collect()
}

fn text_at(strings: &[u8], offset: u64) -> Option<String> {
    let bytes = strings.get(usize::try_from(offset).ok()?..)?;
    let name = bytes.get(..bytes.iter().take(4096).position(|byte| *byte == 0)?)?;
    Some(text(name))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A range of the file, if it lies within the file.
fn range(offset: u64, size: u64, len: usize) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    (end <= len).then_some(start..end)
}
