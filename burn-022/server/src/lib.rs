//! A server for programs of Burn 0.22 in other processes: their tensors live here, on the engine.
//!
//! ```no_run
//! use burn_remote::server::{TokenAuthorizer, WebSocketTransport};
//! let server = burn_t4a_022_server::server().with_authorizer(TokenAuthorizer::new("secret")?);
//! server.serve(WebSocketTransport::new(3000))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client is any program of Burn 0.22 with the feature `remote-websocket`:
//! `Device::remote_options(&RemoteHost::websocket("ws://machine:3000").with_credential("secret")).init()`.
//! What `burn-t4a-022-ext` with its feature `remote` adds to tensors there, contractions over
//! semirings and factorisations with their gradients, arrives as one message per operation
//! ([`t4a_operations::wire`]) and runs in the engine's kernels.
//!
//! An operation that fails, and a message that is damaged, ends the session it came in, with the reason in
//! the log; other sessions and the server go on.

use burn_ir::{BackendIr, CustomOpIr, HandleContainer, ScalarIr, TensorIr};
use burn_remote::server::BackendServer;
use burn_t4a_022::{BurnT4a, T4aDevice, T4aTensor};
use t4a_operations::OperationError;
use t4a_operations::wire::{ID, Message};
use t4a_tensor::AnyTensor;

/// A server of the engine's one device that knows its operations. It opens every session unless given
/// an authorizer.
pub fn server() -> BackendServer<BurnT4a> {
    BackendServer::new([T4aDevice]).with_custom_op(ID, |handles, message, _| {
        if let Err(error) = answer(handles, message) {
            // The interpreter of a session has no other way to report it.
            panic!("{error}");
        }
    })
}

/// Reads the operands, runs the operation, and registers what it returns.
fn answer(
    handles: &mut HandleContainer<<BurnT4a as BackendIr>::Handle>,
    message: &CustomOpIr,
) -> Result<(), OperationError> {
    let word = |x: &ScalarIr| match *x {
        ScalarIr::UInt(word) => Ok(word),
        other => Err(OperationError::Message(format!("{other:?} is no word of a message"))),
    };
    let words = message.scalars.iter().map(word).collect::<Result<Vec<u64>, _>>()?;
    let asked = Message::from_words(&words)?;
    let tensors = message.inputs.iter().map(|x| operand(handles, x)).collect();
    let results = asked.answer(tensors)?;
    let places = &message.outputs;
    if results.len() != places.len() {
        let text = format!("{} results, {} are expected", results.len(), places.len());
        return Err(OperationError::Message(text));
    }
    for (place, result) in places.iter().zip(results) {
        // A number has shape [1] in Burn.
        let result = if result.rank() == 0 { result.reshape(&[1])? } else { result };
        if result.shape() != &*place.shape {
            let (a, b) = (result.shape(), &*place.shape);
            let text = format!("a result has shape {a:?}, {b:?} is expected");
            return Err(OperationError::Message(text));
        }
        let (dtype, result) = (result.dtype(), T4aTensor::new(result)?);
        match dtype.is_int() {
            true => handles.register_int_tensor::<BurnT4a>(&place.id, result),
            false => handles.register_float_tensor::<BurnT4a>(&place.id, result),
        }
    }
    Ok(())
}

fn operand(
    handles: &mut HandleContainer<<BurnT4a as BackendIr>::Handle>,
    x: &TensorIr,
) -> AnyTensor {
    let tensor = if x.dtype.is_float() {
        handles.get_float_tensor::<BurnT4a>(x)
    } else if x.dtype.is_bool() {
        handles.get_bool_tensor::<BurnT4a>(x)
    } else {
        handles.get_int_tensor::<BurnT4a>(x)
    };
    tensor.into_any()
}
