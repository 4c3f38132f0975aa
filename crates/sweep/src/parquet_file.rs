//! A table as a Parquet file that any tool for such files can read; what was run stands as JSON
//! in the footer. The same table gives the same bytes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::data_type::{ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use reveille_measure::{NoShard, Shard};
use reveille_place::{InputError, InputKind, Mistake, read_input};
use reveille_usage::{SoundPages, check_place};
use serde::{Deserialize, Serialize};

use crate::design::Design;
use crate::error::SweepError;
use crate::journal::Outcomes;
use crate::table::{Column, Table, Values};

/// Where in the footer the design stands.
const KEY: &str = "reveille.sweep";
/// Goes up when a reader of the version before would misread a file.
const VERSION: u32 = 2;
/// Rows that a reader can take at a time.
const ROWS_IN_GROUP: usize = 1 << 20;
const MAGIC: &[u8] = b"PAR1";
const ANEW: &str = "run `reveille sweep` again, or copy the file again";

/// A finished sweep, or a finished part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub design: Design,
    pub shard: Shard,
    pub table: Table,
}

#[derive(Serialize, Deserialize)]
struct About {
    version: u32,
    shard: String,
    design: Design,
}

impl Finished {
    /// The rows of a shard whose cells all have an outcome.
    pub fn new(design: Design, shard: Shard, outcomes: &Outcomes) -> Finished {
        let table = Table::new(&design, shard, outcomes);
        Finished { design, shard, table }
    }

    /// Reason and place of each cell that failed.
    pub fn failures(&self) -> Vec<(String, String)> {
        let (cells, errors) = (self.table.texts("cell"), self.table.texts("error"));
        let text = |name, row: usize| self.table.texts(name)[row].clone().unwrap_or_default();
        let mut failures = Vec::new();
        for (row, error) in errors.iter().enumerate() {
            let first = row == 0 || cells[row - 1] != cells[row];
            let failed = first && !self.table.has_too_few(row);
            if let Some(reason) = error.clone().filter(|_| failed) {
                let edits = text("edits", row);
                let edits = if edits.is_empty() { "the baseline".to_owned() } else { edits };
                let (machine, base) = (text("machine", row), text("base", row));
                let (workload, load) = (text("workload", row), text("load_given", row));
                failures.push((reason, format!("{edits} on {base}, {machine}, {workload} {load}")));
            }
        }
        failures
    }

    /// The bytes of a Parquet file.
    pub fn to_parquet(&self) -> Result<Vec<u8>, SweepError> {
        let failed = |error: ParquetError| {
            let mistake =
                Mistake::new(format!("cannot be made a Parquet file: {error}"), "report this");
            mistake.in_file(self.design.name.clone())
        };
        self.encode().map_err(failed)
    }

    /// Reads the bytes of a file; errors name it `file`.
    pub fn from_parquet(file: &str, bytes: Vec<u8>) -> Result<Finished, SweepError> {
        decode(bytes).map_err(|mistake| mistake.in_file(file))
    }

    fn encode(&self) -> Result<Vec<u8>, ParquetError> {
        let shard = self.shard.to_string();
        let about = About { version: VERSION, shard, design: self.design.clone() };
        let about = serde_json::to_string(&about);
        let about = about.map_err(|error| ParquetError::General(error.to_string()))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("reveille ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), about)]))
            .build();
        let schema = schema(&self.table)?;
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
        let rows: Vec<usize> = (0..self.table.rows()).collect();
        for rows in rows.chunks(ROWS_IN_GROUP) {
            let mut group = writer.next_row_group()?;
            for column in &self.table.columns {
                match column.values.pick(rows) {
                    Values::Text(values) => {
                        let bytes = |text: String| ByteArray::from(text.into_bytes());
                        let values = values.into_iter().map(|text| text.map(bytes));
                        write::<ByteArrayType>(&mut group, values.collect())?;
                    }
                    Values::Whole(values) => write::<Int64Type>(&mut group, values)?,
                    Values::Number(values) => write::<DoubleType>(&mut group, values)?,
                }
            }
            group.close()?;
        }
        writer.into_inner()
    }
}

fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: Vec<Option<T::T>>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let present: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&present), None)?;
    column.close()
}

fn schema(table: &Table) -> Result<TypePtr, ParquetError> {
    let field = |column: &Column| {
        let (physical, converted) = match column.values {
            Values::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            Values::Whole(_) => (Physical::INT64, ConvertedType::NONE),
            Values::Number(_) => (Physical::DOUBLE, ConvertedType::NONE),
        };
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_converted_type(converted);
        field.build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?))
}

/// Reads what `reveille sweep` or `merge` has written.
///
/// # Errors
/// It cannot be read, is no such file, or is damaged.
pub fn read(path: &Path) -> Result<Finished, SweepError> {
    let file = path.display().to_string();
    let bytes = read_input(path, InputKind::RECORDING);
    let help = "name a file that `reveille sweep` wrote";
    let bytes = bytes.map_err(|error| InputError::unreadable(path, error, help))?;
    Finished::from_parquet(&file, bytes)
}

fn broken(error: ParquetError) -> Mistake {
    Mistake::new(format!("cannot be read as Parquet: {error}"), ANEW)
}

fn decode(bytes: Vec<u8>) -> Result<Finished, Mistake> {
    if bytes.len() < 3 * MAGIC.len() || !bytes.starts_with(MAGIC) || !bytes.ends_with(MAGIC) {
        return Err(Mistake::new("is no whole Parquet file", ANEW));
    }
    let length = bytes.len();
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(broken)?;
    let metadata = reader.metadata().file_metadata();
    let entries = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let text = entries.iter().find(|entry| entry.key == KEY).and_then(|entry| entry.value.as_ref());
    let Some(text) = text else {
        let problem = format!("is no sweep: its metadata have no `{KEY}`");
        return Err(Mistake::new(problem, "name a file that `reveille sweep` wrote"));
    };
    let about: Result<About, _> = serde_json::from_str(text);
    let about = about.map_err(|error| {
        Mistake::new(format!("`{KEY}` in its metadata cannot be read: {error}"), ANEW)
    })?;
    let shard = about.shard.parse::<Shard>().map_err(|wrong| {
        Mistake::new(format!("`{}` {wrong}; {}", about.shard, NoShard::FIX), ANEW)
    })?;
    if about.version != VERSION {
        let problem = format!("is of version {} of the format, not {VERSION}", about.version);
        let help = "run `reveille sweep` again, or read it with the reveille that wrote it";
        return Err(Mistake::new(problem, help));
    }
    if !about.design.is_sound() {
        let problem = format!("`{KEY}` in its metadata describes no sweep");
        return Err(Mistake::new(problem, ANEW));
    }
    let mut table = Table::empty(&about.design);
    let places: HashMap<&str, usize> =
        metadata.schema_descr().columns().iter().map(|c| c.name()).zip(0..).collect();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(broken)?;
        for column in &mut table.columns {
            let missing = || Mistake::new(format!("has no sound column `{}`", column.name), ANEW);
            let place = *places.get(column.name.as_str()).ok_or_else(missing)?;
            let chunk = group.metadata().column(place);
            check_place(chunk, length).map_err(broken)?;
            let description = group.metadata().schema_descr().column(place);
            if description.max_rep_level() > 0 || description.max_def_level() > 1 {
                return Err(missing());
            }
            let pages = group.get_column_page_reader(place).map_err(broken)?;
            let pages = SoundPages::new(pages, &description);
            match (get_column_reader(description, Box::new(pages)), &mut column.values) {
                (ColumnReader::ByteArrayColumnReader(reader), Values::Text(values)) => {
                    for cell in cells(reader)? {
                        let text = cell.map(|cell| String::from_utf8(cell.data().to_vec()));
                        values.push(text.transpose().map_err(|_| missing())?);
                    }
                }
                (ColumnReader::Int64ColumnReader(reader), Values::Whole(values)) => {
                    values.extend(cells(reader)?);
                }
                (ColumnReader::DoubleColumnReader(reader), Values::Number(values)) => {
                    values.extend(cells(reader)?);
                }
                _ => return Err(missing()),
            }
        }
    }
    if table.columns.iter().any(|column| column.values.len() != table.rows()) {
        return Err(Mistake::new("has columns of different lengths", ANEW));
    }
    Ok(Finished { design: about.design, shard, table })
}

fn cells<T: DataType>(mut reader: ColumnReaderImpl<T>) -> Result<Vec<Option<T::T>>, Mistake> {
    let mut all = Vec::new();
    loop {
        let (mut present, mut values) = (Vec::new(), Vec::new());
        let read = reader.read_records(1 << 16, Some(&mut present), None, &mut values);
        let (rows, _, _) = read.map_err(broken)?;
        if rows == 0 {
            return Ok(all);
        }
        let mut values = values.into_iter();
        let cells = present.iter().take(rows);
        all.extend(cells.map(|&level| if level > 0 { values.next() } else { None }));
    }
}
