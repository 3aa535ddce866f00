//! Asking a person: what takes something from somebody, or replaces files, is not for a
//! program alone to decide.
//!
//! Where the client can ask, its person is asked through it; where it cannot, the call is
//! refused with the command to type. An agreement is to one question, and to that once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, ProtocolVersion,
    ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::Value;

/// How long a person may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(600);
/// How many questions may be open at once; the oldest is forgotten.
const OPEN_MAX: usize = 32;
/// What the answer is called, in the question and among the answers.
const CONFIRM: &str = "confirm";

/// What came of asking.
pub(crate) enum PersonSays {
    /// A person agreed to exactly this.
    Agreed,
    /// A person was asked, and did not agree.
    Declined,
    /// The client has no way to ask.
    NobodyToAsk,
    /// The client is told to ask, and to call again.
    Asked(Box<InputRequiredResult>),
}

/// The questions that wait for an answer.
#[derive(Default)]
pub(crate) struct People {
    open: Mutex<VecDeque<OpenQuestion>>,
}

/// One question: which call it was asked for, and what about.
struct OpenQuestion {
    name: String,
    subject: Value,
}

impl People {
    /// Asks whether `subject` may be done. `question` says it to people.
    pub(crate) async fn decide(
        &self,
        context: &RequestContext<RoleServer>,
        call: &CallToolRequestParams,
        question: &str,
        subject: Value,
    ) -> PersonSays {
        if !can_ask(context) {
            return PersonSays::NobodyToAsk;
        }
        let modern =
            context.protocol_version().is_some_and(|it| it >= ProtocolVersion::V_2026_07_28);
        if !modern {
            return ask_now(context, question).await;
        }
        match (&call.request_state, &call.input_responses) {
            (Some(name), Some(answers)) if self.close(name, &subject) => {
                let answer = answers.get(CONFIRM);
                match answer.is_some_and(|it| agrees(it["action"] == "accept", &it["content"])) {
                    true => PersonSays::Agreed,
                    false => PersonSays::Declined,
                }
            }
            // Nothing was asked, or something else: what it is about has changed since.
            _ => PersonSays::Asked(Box::new(self.open(question, subject))),
        }
    }

    fn open(&self, question: &str, subject: Value) -> InputRequiredResult {
        let mut random = [0_u8; 16];
        // Names only have to differ: an agreement is compared with what was asked.
        let _ = getrandom(&mut random, GetRandomFlags::empty());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("{:032x}", u128::from_be_bytes(random));
        if open.len() == OPEN_MAX {
            open.pop_front();
        }
        open.push_back(OpenQuestion { name: name.clone(), subject });
        let ask = InputRequest::Elicitation(ElicitRequest::new(form(question)));
        let asked = InputRequests::from([(CONFIRM.to_owned(), ask)]);
        InputRequiredResult::new(Some(asked), Some(name))
    }

    /// Takes an open question away. Was it asked, and about this?
    fn close(&self, name: &str, subject: &Value) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let place = open.iter().position(|question| question.name == name);
        let question = place.and_then(|place| open.remove(place));
        question.is_some_and(|question| question.subject == *subject)
    }
}

/// Can the client show a form to a person?
fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let able = context.client_capabilities().and_then(|able| able.elicitation);
    able.is_some_and(|able| able.form.is_some() || able.url.is_none())
}

/// Asks through the connection, as clients of earlier revisions are asked.
async fn ask_now(context: &RequestContext<RoleServer>, question: &str) -> PersonSays {
    let ask = ServerRequest::ElicitRequest(ElicitRequest::new(form(question)));
    let options = PeerRequestOptions::with_timeout(ANSWERS_WITHIN);
    let answered = async {
        let asked = context.peer.send_request_with_option(ask, options).await;
        asked?.await_response().await
    };
    let answer = tokio::select! {
        answer = answered => answer,
        () = context.ct.cancelled() => return PersonSays::Declined,
    };
    match answer {
        Ok(ClientResult::ElicitResult(result)) => {
            let accepted = result.action == ElicitationAction::Accept;
            match agrees(accepted, &result.content.unwrap_or_default()) {
                true => PersonSays::Agreed,
                false => PersonSays::Declined,
            }
        }
        _ => PersonSays::Declined,
    }
}

/// Only a plain yes is one.
fn agrees(accepted: bool, content: &Value) -> bool {
    accepted && content[CONFIRM] == true
}

fn form(question: &str) -> ElicitRequestParams {
    let schema = ElicitationSchema::builder()
        .required_bool_property(CONFIRM, |yes| yes.title("Do it").with_default(false))
        .build_unchecked();
    let message = question.to_owned();
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: schema }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_plain_yes_is_an_agreement() {
        let yes = json!({ "confirm": true });
        assert!(agrees(true, &yes) && !agrees(false, &yes));
        for content in [json!({ "confirm": false }), json!({ "confirm": "true" }), json!(null)] {
            assert!(!agrees(true, &content), "{content}");
        }
    }

    #[test]
    fn an_agreement_is_to_one_question_and_to_that_once() {
        let people = People::default();
        let asked = |subject: &str| {
            let question = people.open("?", json!(subject));
            question.request_state.expect("a name")
        };
        let name = asked("this");
        assert!(!people.close(&name, &json!("that")), "it was asked about something else");
        assert!(!people.close(&name, &json!("this")), "it is closed by then");
        let name = asked("this");
        assert!(people.close(&name, &json!("this")));
        assert!(!people.close(&name, &json!("this")), "only once");
        assert!(!people.close("made up", &json!("this")));
    }

    #[test]
    fn questions_that_nobody_answers_are_forgotten() {
        let people = People::default();
        let names: Vec<_> = (0..=OPEN_MAX).map(|_| people.open("?", json!(1))).collect();
        let close = |question: &InputRequiredResult| {
            people.close(question.request_state.as_deref().expect("a name"), &json!(1))
        };
        assert!(!close(&names[0]) && close(&names[OPEN_MAX]));
    }
}
