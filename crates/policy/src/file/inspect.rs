//! What the compiler lets pass and a policy file may not have: a version of the interface that
//! is not this one, calls out, memory that outlives a decision, code that runs at loading.

use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use reveille_place::Source;

use super::POLICY_INTERFACE;
use super::message::Message;

/// Set by REVEILLE_POLICY() in policy/reveille.h.
const INTERFACE: &str = "reveille_interface_of_file";
/// What compilers call by themselves, to copy and clear structs.
const COMPILERS_OWN: [&str; 4] = ["memcpy", "memmove", "memset", "memcmp"];

/// Errors of a shared object made of `source`.
pub(super) fn inspect(source: &Source, object: &[u8]) -> Vec<Message> {
    let file = match object::File::parse(object) {
        Ok(file) => file,
        Err(error) => {
            let text = format!("the compiler has made something else than a library: {error}");
            return vec![Message::error(source, 0..0, text, "set CC to gcc or clang")];
        }
    };
    let mut messages = Vec::new();
    let mut refuse = |name: &str, text: String, help: &str| {
        messages.push(Message::error(source, place(&source.text, name), text, help));
    };
    let version = interface(&file);
    if version != Some(POLICY_INTERFACE) {
        let text = match version {
            Some(other) => format!(
                "is written for version {other} of the interface; this reveille has version \
                 {POLICY_INTERFACE}"
            ),
            None => "does not say which version of the interface it is written for".to_owned(),
        };
        let help = format!(
            "compare it with docs/policy.md, then write REVEILLE_POLICY({POLICY_INTERFACE});"
        );
        refuse("REVEILLE_POLICY", text, &help);
    }
    for symbol in file.symbols() {
        let Ok(name) = symbol.name() else { continue };
        // gcc numbers a function's static variables.
        let name = name.split('.').next().unwrap_or(name);
        let kind = symbol.section_index().and_then(|i| file.section_by_index(i).ok());
        let kind = kind.map_or(SectionKind::Unknown, |section| section.kind());
        let writable = matches!(
            kind,
            SectionKind::Data
                | SectionKind::UninitializedData
                | SectionKind::Tls
                | SectionKind::UninitializedTls
        );
        if writable && symbol.size() > 0 && symbol.kind() != SymbolKind::Section {
            let text = format!(
                "`{name}` outlives a decision: runs would depend on each other and on --jobs"
            );
            refuse(name, text, "make it const, or keep it on the stack");
        } else if symbol.is_undefined()
            && !name.is_empty()
            && !symbol.is_weak()
            && !COMPILERS_OWN.contains(&name)
            && name != "__tls_get_addr"
        {
            let text = format!("`{name}` is not defined: a policy file has no library");
            refuse(name, text, "define it in the file, or do without it");
        }
    }
    for section in [".init_array", ".fini_array", ".init", ".fini"] {
        if file.section_by_name(section).is_some_and(|s| s.size() > 0) {
            let text = "has code that runs when it is loaded or unloaded".to_owned();
            refuse("__attribute__", text, "remove constructors and destructors");
        }
    }
    messages
}

fn interface(file: &object::File) -> Option<u32> {
    let symbol = file.symbols().find(|s| s.name() == Ok(INTERFACE) && s.is_definition())?;
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let bytes = section.data_range(symbol.address(), 4).ok()??;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// First occurrence of a name as a word; the start of the text if there is none.
fn place(text: &str, name: &str) -> std::ops::Range<usize> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let found = text.match_indices(name).find(|(at, _)| {
        !text[..*at].ends_with(letter) && !text[at + name.len()..].starts_with(letter)
    });
    found.map_or(0..0, |(at, _)| at..at + name.len())
}
