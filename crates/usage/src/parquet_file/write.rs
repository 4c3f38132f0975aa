//! Writes a recording as Parquet.

use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Encoding, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use reveille_place::Mistake;

use super::{About, COLUMNS, KEY, Kind, Row, VERSION, WITHOUT_DEMANDS};
use crate::averaged::spread;
use crate::{Demand, InputError, Origin, Sample, Usage};

const ROWS_IN_GROUP: usize = 1 << 20;

impl Usage {
    /// The recording as the bytes of a Parquet file.
    ///
    /// # Errors
    /// As [`Usage::validate`]: an invalid recording could not be read back.
    pub fn to_parquet(&self) -> Result<Vec<u8>, InputError> {
        self.validate()?;
        self.encode().map_err(|error| {
            let problem = format!("cannot be made a Parquet file: {error}");
            Mistake::new(problem, "report this").in_file(&self.name)
        })
    }

    fn encode(&self) -> Result<Vec<u8>, ParquetError> {
        let (version, demands) = match self.is_only_averages() {
            true => (WITHOUT_DEMANDS, &[][..]),
            false => (VERSION, self.demands.as_slice()),
        };
        let about = serde_json::to_string(&About { version, usage: self })
            .map_err(|error| ParquetError::General(error.to_string()))?;
        let steady = |name: &str| ColumnPath::from(name);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("reveille ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), about)]))
            // Times ascend, so their differences are small.
            .set_column_dictionary_enabled(steady("at_ns"), false)
            .set_column_encoding(steady("at_ns"), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled(steady("done_ns"), false)
            .set_column_encoding(steady("done_ns"), Encoding::DELTA_BINARY_PACKED)
            .build();
        let mut writer = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties))?;
        for demands in demands.chunks(ROWS_IN_GROUP) {
            group(&mut writer, Kind::Demand, demands, demand_row)?;
        }
        for samples in self.samples.chunks(ROWS_IN_GROUP) {
            group(&mut writer, Kind::Sample, samples, sample_row)?;
        }
        writer.into_inner()
    }
}

impl Usage {
    /// Can the demands be recomputed from the samples? They are not written then.
    fn is_only_averages(&self) -> bool {
        matches!(self.origin, Origin::Averaged { .. })
            && spread(&self.samples).is_ok_and(|spread| {
                spread.threads == self.threads && spread.demands == self.demands
            })
    }
}

fn schema() -> Result<TypePtr, ParquetError> {
    let kind = Type::primitive_type_builder("kind", Physical::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_converted_type(ConvertedType::UTF8)
        .build()?;
    let mut fields = vec![Arc::new(kind)];
    for name in COLUMNS {
        let presence = if name == "at_ns" { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let number = Type::primitive_type_builder(name, Physical::INT64);
        fields.push(Arc::new(number.with_repetition(presence).build()?));
    }
    Ok(Arc::new(Type::group_type_builder("usage").with_fields(fields).build()?))
}

fn demand_row(demand: &Demand) -> Row {
    let &Demand { at_ns, cpu_ns, thread, done_ns } = demand;
    let none = None;
    [Some(at_ns), Some(thread.into()), Some(cpu_ns), done_ns, none, none, none, none, none]
}

fn sample_row(sample: &Sample) -> Row {
    let &Sample { at_ns, runtime_ns, runnable, nr_periods, nr_throttled, throttled_ns } = sample;
    let runnable = runnable.map(u64::from);
    let counters = [Some(nr_periods), Some(nr_throttled), Some(throttled_ns)];
    let [periods, throttled, time] = counters;
    [Some(at_ns), None, None, None, Some(runtime_ns), runnable, periods, throttled, time]
}

/// Writes rows of one kind as a row group.
fn group<T>(
    writer: &mut SerializedFileWriter<Vec<u8>>,
    kind: Kind,
    items: &[T],
    row: impl Fn(&T) -> Row,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    if let Some(mut column) = group.next_column()? {
        let kinds = vec![ByteArray::from(kind.name()); items.len()];
        column.typed::<ByteArrayType>().write_batch(&kinds, None, None)?;
        column.close()?;
    }
    for index in 0..COLUMNS.len() {
        let Some(mut column) = group.next_column()? else { break };
        let cells = items.iter().map(|item| row(item)[index]);
        let present: Vec<i16> = cells.clone().map(|cell| i16::from(cell.is_some())).collect();
        // No value is 2^63 or more: see `Usage::validate`.
        let values: Vec<i64> = cells.flatten().map(|value| value as i64).collect();
        column.typed::<Int64Type>().write_batch(&values, Some(&present), None)?;
        column.close()?;
    }
    group.close()?;
    Ok(())
}
