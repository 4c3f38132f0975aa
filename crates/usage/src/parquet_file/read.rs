//! Reads a recording from Parquet. Other tools may have rewritten the file: dropped columns, turned
//! integers into floats, reordered rows.

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use reveille_place::Mistake;

use super::pages::{Sound, check_place};
use super::{COLUMNS, KEY, Kind, MAGIC, Row, VERSION, Version, WITHOUT_DEMANDS};
use crate::averaged::spread;
use crate::valid::MAX_ROWS;
use crate::{Demand, InputError, Sample, Usage};

const BATCH: usize = 1 << 16;

const ANEW: &str = "record again with `reveille record`, or import with `reveille import`";

impl Usage {
    /// Reads a recording from the bytes of a Parquet file; errors name it `file`.
    pub fn from_parquet(file: &str, bytes: Vec<u8>) -> Result<Usage, InputError> {
        decode(bytes).map_err(|mistake| mistake.in_file(file))
    }
}

fn decode(bytes: Vec<u8>) -> Result<Usage, Mistake> {
    if !bytes.starts_with(MAGIC) {
        return Err(Mistake::new("is no Parquet file", ANEW));
    }
    if bytes.len() < 3 * MAGIC.len() || !bytes.ends_with(MAGIC) {
        let fix = "copy it again: Reveille writes whole files or none";
        return Err(Mistake::new("is a Parquet file that is cut off", fix));
    }
    let length = bytes.len();
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(broken)?;
    let metadata = reader.metadata().file_metadata();
    let (version, mut usage) = about(metadata)?;
    let columns = Columns::find(metadata)?;
    let rows = usize::try_from(metadata.num_rows()).unwrap_or(usize::MAX);
    if rows > MAX_ROWS {
        let problem = format!("has {rows} rows, more than the {MAX_ROWS} that can be read");
        return Err(Mistake::new(problem, "take a shorter part of the recording"));
    }
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(broken)?;
        columns.read(&*group, length, &mut usage)?;
    }
    // Other tools may have changed the order; the sort is stable.
    usage.demands.sort_by_key(|demand| demand.at_ns);
    usage.samples.sort_by_key(|sample| sample.at_ns);
    if let Some(mistake) = usage.first_mistake() {
        return Err(mistake);
    }
    if version == WITHOUT_DEMANDS {
        let spread = spread(&usage.samples)?;
        (usage.demands, usage.threads) = (spread.demands, spread.threads);
    }
    Ok(usage)
}

fn broken(error: ParquetError) -> Mistake {
    let fix = "copy it again, or record again; `snappy` is the compression that can be read";
    Mistake::new(format!("cannot be read as Parquet: {error}"), fix)
}

/// Parses the JSON in the footer: version, and recording without its rows.
fn about(metadata: &FileMetaData) -> Result<(u32, Usage), Mistake> {
    let entries = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let text = entries.iter().find(|entry| entry.key == KEY).and_then(|entry| entry.value.as_ref());
    let Some(text) = text else {
        let problem = format!("is no recording: its metadata have no `{KEY}`");
        let fix = "a table of requests is imported as CSV: `reveille import`; tools that \
                   copy a recording must keep its key-value metadata";
        return Err(Mistake::new(problem, fix));
    };
    let unread = |error: serde_json::Error| {
        Mistake::new(format!("`{KEY}` in its metadata cannot be read: {error}"), ANEW)
    };
    let Version { version } = serde_json::from_str(text).map_err(unread)?;
    if ![VERSION, WITHOUT_DEMANDS].contains(&version) {
        let problem = format!(
            "is of version {version} of the format; this reveille reads {VERSION} and \
             {WITHOUT_DEMANDS}"
        );
        return Err(Mistake::new(
            problem,
            "read it with the reveille that wrote it, or a newer one",
        ));
    }
    Ok((version, serde_json::from_str(text).map_err(unread)?))
}

/// Indices of the columns in the file.
struct Columns {
    kind: usize,
    numbers: [usize; COLUMNS.len()],
}

impl Columns {
    fn find(metadata: &FileMetaData) -> Result<Columns, Mistake> {
        let schema = metadata.schema_descr();
        let find = |name: &str| {
            let here: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
            let flat = |n: &usize| schema.column(*n).path().parts() == [name];
            let Some(number) = (0..here.len()).find(flat) else {
                let problem = format!("has no column `{name}`; it has {}", here.join(", "));
                let fix = "keep all columns of a recording, under their names";
                return Err(Mistake::new(problem, fix));
            };
            let column = schema.column(number);
            let (physical, logical) = (column.physical_type(), column.logical_type_ref());
            let text = physical == Physical::BYTE_ARRAY;
            // Older writers set only the converted type, newer ones the logical type.
            let plain = matches!(logical, None | Some(LogicalType::Integer(_)))
                && matches!(
                    column.converted_type(),
                    ConvertedType::NONE
                        | ConvertedType::INT_8
                        | ConvertedType::INT_16
                        | ConvertedType::INT_32
                        | ConvertedType::INT_64
                        | ConvertedType::UINT_8
                        | ConvertedType::UINT_16
                        | ConvertedType::UINT_32
                        | ConvertedType::UINT_64
                );
            let whole = plain && matches!(physical, Physical::INT32 | Physical::INT64);
            let wanted = if name == "kind" { text } else { whole };
            if !wanted || column.max_rep_level() > 0 || column.max_def_level() > 1 {
                let type_name = match column.converted_type() {
                    ConvertedType::NONE => physical.to_string(),
                    converted => converted.to_string(),
                };
                let problem = format!("column `{name}` is of type {type_name}");
                let want = if name == "kind" { "text" } else { "64-bit whole numbers" };
                return Err(Mistake::new(problem, format!("write it as {want}")));
            }
            Ok(number)
        };
        let mut numbers = [0; COLUMNS.len()];
        for (number, name) in numbers.iter_mut().zip(COLUMNS) {
            *number = find(name)?;
        }
        Ok(Columns { kind: find("kind")?, numbers })
    }

    /// Adds a row group to `usage`.
    fn read(
        &self,
        group: &dyn RowGroupReader,
        file_length: usize,
        usage: &mut Usage,
    ) -> Result<(), Mistake> {
        let open = |number| {
            check_place(group.metadata().column(number), file_length)?;
            let column = group.metadata().schema_descr().column(number);
            let pages = Sound::new(group.get_column_page_reader(number)?, &column);
            Ok(get_column_reader(column, Box::new(pages)))
        };
        let open = |number| open(number).map_err(broken);
        let ColumnReader::ByteArrayColumnReader(mut kinds) = open(self.kind)? else {
            return Err(Mistake::new("column `kind` is no text", ANEW));
        };
        let mut numbers = self.numbers.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        loop {
            let kinds = batch::<ByteArrayType>(&mut kinds)?;
            let named = numbers.iter_mut().zip(COLUMNS);
            let cells = named.map(|(reader, name)| whole_numbers(reader, name));
            let cells = cells.collect::<Result<Vec<_>, _>>()?;
            if cells.iter().any(|cells| cells.len() != kinds.len()) {
                return Err(Mistake::new("has columns of different lengths", ANEW));
            }
            if kinds.is_empty() {
                return Ok(());
            }
            if usage.demands.len() + usage.samples.len() + kinds.len() > MAX_ROWS {
                let fix = "take a shorter part of the recording";
                return Err(Mistake::new(format!("has more than {MAX_ROWS} rows"), fix));
            }
            for (index, kind) in kinds.iter().enumerate() {
                add(usage, kind.as_ref(), std::array::from_fn(|c| cells[c][index]))?;
            }
        }
    }
}

fn add(usage: &mut Usage, kind: Option<&ByteArray>, row: Row) -> Result<(), Mistake> {
    let number = 1 + usage.demands.len() + usage.samples.len();
    let kind = match kind.map(ByteArray::data) {
        Some(b"demand") => Kind::Demand,
        Some(b"sample") => Kind::Sample,
        other => {
            let name = other.map_or("empty".into(), |name| {
                format!("`{}`", String::from_utf8_lossy(&name[..name.len().min(40)]))
            });
            let fix = "rows are of kind `demand` or `sample`";
            return Err(Mistake::new(format!("row {number}: `kind` is {name}"), fix));
        }
    };
    let cell = |column: usize| {
        row[column].ok_or_else(|| {
            let (kind, name) = (kind.name(), COLUMNS[column]);
            Mistake::new(format!("row {number}: a {kind} without `{name}`"), ANEW)
        })
    };
    let small = |column: usize, value: u64| {
        u32::try_from(value).map_err(|_| {
            let problem = format!("row {number}: `{}` is {value}, beyond 32 bits", COLUMNS[column]);
            Mistake::new(problem, ANEW)
        })
    };
    match kind {
        Kind::Demand => usage.demands.push(Demand {
            at_ns: cell(0)?,
            thread: small(1, cell(1)?)?,
            cpu_ns: cell(2)?,
            done_ns: row[3],
        }),
        Kind::Sample => usage.samples.push(Sample {
            at_ns: cell(0)?,
            runtime_ns: cell(4)?,
            runnable: row[5].map(|runnable| small(5, runnable)).transpose()?,
            nr_periods: cell(6)?,
            nr_throttled: cell(7)?,
            throttled_ns: cell(8)?,
        }),
    }
    Ok(())
}

fn whole_numbers(reader: &mut ColumnReader, name: &str) -> Result<Vec<Option<u64>>, Mistake> {
    let cells: Vec<Option<i64>> = match reader {
        ColumnReader::Int64ColumnReader(reader) => batch(reader)?,
        ColumnReader::Int32ColumnReader(reader) => {
            batch(reader)?.into_iter().map(|cell| cell.map(i64::from)).collect()
        }
        _ => return Err(Mistake::new(format!("column `{name}` has no whole numbers"), ANEW)),
    };
    let negative = |value: i64| {
        Mistake::new(
            format!("column `{name}`: {value} is negative"),
            "write a time or count of 0 or more",
        )
    };
    let whole = |cell: Option<i64>| {
        cell.map(|value| u64::try_from(value).map_err(|_| negative(value))).transpose()
    };
    cells.into_iter().map(whole).collect()
}

/// The next rows of a column; empty at its end.
fn batch<T: DataType>(reader: &mut ColumnReaderImpl<T>) -> Result<Vec<Option<T::T>>, Mistake> {
    let (mut present, mut values) = (Vec::new(), Vec::new());
    let (rows, _, _) =
        reader.read_records(BATCH, Some(&mut present), None, &mut values).map_err(broken)?;
    let mut values = values.into_iter();
    if present.is_empty() {
        // A required column.
        return Ok(values.map(Some).collect());
    }
    let cells = present.iter().take(rows);
    Ok(cells.map(|&level| if level > 0 { values.next() } else { None }).collect())
}
