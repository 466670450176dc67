//! What expressions make, counted among the memory of statements for as long as it is there.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayData, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

/// What is smaller is not worth counting.
const LEAST: usize = 1 << 16;

/// The largest value that constants may become: the plan holds it, where nobody counts.
const MOST_CONSTANT: usize = 1 << 18;

/// The memory that all statements share.
#[derive(Debug, Clone)]
pub(crate) struct StatementMemory(Arc<dyn MemoryPool>);

/// Functions are compared by what they compute, to which memory does not matter.
impl PartialEq for StatementMemory {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for StatementMemory {}

impl Hash for StatementMemory {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl StatementMemory {
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        Self(Arc::clone(pool))
    }

    /// Whether something of this size can be made: asked beforehand where it may be huge, since it is only counted when it
    /// is there. A column of texts has no more than 2 GiB in any case.
    pub(crate) fn has_room_for(&self, name: &str, bytes: usize) -> Result<()> {
        if i32::try_from(bytes).is_err() {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{name} would make {bytes} bytes of text at once"
            )));
        }
        MemoryConsumer::new(name).register(&self.0).try_grow(bytes)
    }

    /// The same value, counted until its last reader is gone; or an error if there is no memory left for it.
    pub(crate) fn counted(&self, name: &str, value: ColumnarValue) -> Result<ColumnarValue> {
        match value {
            ColumnarValue::Scalar(scalar) if scalar.size() > MOST_CONSTANT => {
                let size = scalar.size();
                Err(DataFusionError::ResourcesExhausted(format!(
                    "{name} made a constant of {size} bytes, and may make {MOST_CONSTANT}"
                )))
            }
            ColumnarValue::Array(array) if array.get_buffer_memory_size() >= LEAST => {
                let reservation = MemoryConsumer::new(name).register(&self.0);
                reservation.try_grow(array.get_buffer_memory_size())?;
                Ok(ColumnarValue::Array(make_array(holding(array.to_data(), &Arc::new(reservation))?)))
            }
            small => Ok(small),
        }
    }
}

/// The same data, whose buffers hold a reservation.
fn holding(data: ArrayData, reservation: &Arc<MemoryReservation>) -> Result<ArrayData> {
    let hold = |buffer: &Buffer| match buffer.is_empty() {
        true => buffer.clone(),
        false => Bytes::from_owner(Held { buffer: buffer.clone(), _reservation: Arc::clone(reservation) }).into(),
    };
    let buffers = data.buffers().iter().map(hold).collect();
    let children = data.child_data().iter().map(|child| holding(child.clone(), reservation)).collect::<Result<_>>()?;
    Ok(data.into_builder().buffers(buffers).child_data(children).build()?)
}

struct Held {
    buffer: Buffer,
    _reservation: Arc<MemoryReservation>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

/// Gives on what `||` made of texts, counted.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CountedConcatenation {
    signature: Signature,
    memory: StatementMemory,
}

impl CountedConcatenation {
    pub(crate) fn new(memory: StatementMemory) -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable), memory }
    }
}

impl ScalarUDFImpl for CountedConcatenation {
    fn name(&self) -> &'static str {
        "||"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let made = args.args.into_iter().next();
        made.map_or_else(
            || datafusion::common::internal_err!("|| has made nothing"),
            |made| self.memory.counted("||", made),
        )
    }
}
