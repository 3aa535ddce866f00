//! What the protocol asks of a server, answered with what the command says.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
    ErrorCode, ErrorData, Implementation, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::answer::{self, OwnRefusal};
use crate::call::{CommandAnswer, Jvs, Trouble};
use crate::frames::NAME;
use crate::handle::Handle;
use crate::held::Held;
use crate::notice::{self, Notices};
use crate::person::{People, PersonSays};
use crate::progress;
use crate::resource::{self, What};
use crate::tool::{self, Arguments, Effect, Tool, Verb, WrongArguments};

/// What a model is told about all of it.
const INSTRUCTIONS: &str = "\
JVS gives each worktree one writer at a time. Call acquire before you change files (with wait, if \
somebody else may have the lock), pass the handle that it answers to snapshot and release, and \
release when you are done. If a call answers E_FENCING_MISMATCH, the lock was taken over: stop \
writing at once. Do not use steal, reclaim, restore or undo unless you were asked to. Locks are \
released when this server ends.";

/// The server.
pub(crate) struct Server {
    jvs: Jvs,
    held: Arc<Held>,
    people: People,
    notices: Arc<Notices>,
}

/// What a check of a call came to, if it is not to be done now.
type Instead = CallToolResponse;

impl Server {
    pub(crate) fn new(jvs: Jvs, held: Arc<Held>) -> Self {
        Server { jvs, held, people: People::default(), notices: Arc::default() }
    }

    /// Does what a tool is for, and answers what came of it.
    async fn act(
        &self,
        tool: &Tool,
        arguments: &Arguments,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        let words = tool::words(tool.verb, arguments);
        if tool.verb.grants() {
            return self.grant(&words, arguments, context).await;
        }
        let handle = arguments.handle.as_ref();
        let told = self.jvs.run(&words, handle, context.ct.cancelled()).await;
        if let (Verb::Release, Ok(CommandAnswer::Done { .. }), Some(handle)) =
            (tool.verb, &told, handle)
        {
            self.held.remove(handle);
        }
        match told {
            Ok(told) => answer::of(told, None),
            Err(trouble) => answer::no_answer(trouble),
        }
    }

    /// Takes a lock. What is granted to a caller that does not want it any more is released.
    async fn grant(
        &self,
        words: &[String],
        arguments: &Arguments,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        let wait = arguments.text("wait");
        let stop = async {
            match wait {
                // A wait ends at once and leaves nothing.
                Some(_) => context.ct.cancelled().await,
                // Anything else takes milliseconds, and is not interrupted in the middle.
                None => std::future::pending().await,
            }
        };
        let work = self.jvs.run(words, None, stop);
        let told = match &wait {
            Some(wait) => {
                progress::during(work, &self.jvs, context, arguments.worktree(), wait).await
            }
            None => work.await,
        };
        let granted = match &told {
            Ok(CommandAnswer::Done { data, .. }) => Handle::of(data, &self.jvs.session),
            _ => None,
        };
        let cancelled = context.ct.is_cancelled();
        match (&granted, &told) {
            (Some(handle), _) if !cancelled => self.held.add(handle.clone()),
            (Some(handle), _) if !self.held.has(handle) => self.release(handle).await,
            (None, Err(_)) => self.release_unanswered(arguments.worktree().as_deref()).await,
            _ => {}
        }
        match told {
            _ if cancelled => answer::no_answer(Trouble::Stopped),
            Ok(CommandAnswer::Done { .. }) if granted.is_none() => {
                let why = "jvs took the lock and did not say under which term".to_owned();
                answer::no_answer(Trouble::Unusable(why))
            }
            Ok(told) => answer::of(told, granted.as_ref()),
            Err(trouble) => answer::no_answer(trouble),
        }
    }

    /// Best effort: what cannot be released now ends with this process.
    async fn release(&self, handle: &Handle) {
        release(&self.jvs, handle).await;
    }

    /// A command that took a lock was ended before it said so. Not if somebody was told of a
    /// hold of that worktree: that one is needed.
    async fn release_unanswered(&self, worktree: Option<&str>) {
        if self.held.has_any(worktree) {
            return;
        }
        let words = ["lock", "release"].map(str::to_owned).into_iter();
        let words: Vec<String> =
            words.chain(worktree.map(|it| format!("--worktree={it}"))).collect();
        let _ = self.jvs.run(&words, None, std::future::pending()).await;
    }

    /// A person decides on what takes something: the arguments of what they agreed to. `Err` is
    /// what the client is answered instead.
    async fn decided(
        &self,
        tool: &Tool,
        mut arguments: Arguments,
        call: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arguments, Box<Instead>> {
        if let Some(handle) = &arguments.handle {
            self.still_held(handle).await?;
        }
        let mut undoing = String::new();
        if tool.verb == Verb::Undo {
            (arguments, undoing) = self.undoing(arguments).await?;
        }
        let words = tool::words(tool.verb, &arguments);
        let (question, about) = self.question(tool, &arguments, undoing).await?;
        let subject = json!([tool.name, arguments.fields(), about]);
        let refused = |refusal, message: &str| {
            let typed = self.jvs.typed(&words);
            Err(Box::new(answer::refused(refusal, message, Some(&typed)).into()))
        };
        match self.people.decide(context, call, &question, subject).await {
            // A person takes their time.
            PersonSays::Agreed => match self.question(tool, &arguments, String::new()).await? {
                (_, now) if now == about => Ok(arguments),
                _ => refused(
                    OwnRefusal::Changed,
                    "a person agreed, but the lock is not as it was when they were asked; nothing \
                     was done",
                ),
            },
            PersonSays::Asked(asked) => Err(Box::new(CallToolResponse::InputRequired(*asked))),
            PersonSays::Declined => refused(
                OwnRefusal::Declined,
                "a person was asked and did not agree; this is what they would have to type",
            ),
            PersonSays::NobodyToAsk => refused(
                OwnRefusal::NoPerson,
                "a person has to decide this, and this client cannot ask one: tell them, and let \
                 them type the command if they agree; then call acquire or status",
            ),
        }
    }

    /// Nobody is asked about what will be refused anyway: a handle of a hold that is over.
    async fn still_held(&self, handle: &Handle) -> Result<(), Box<Instead>> {
        let words = ["lock", "renew"].map(str::to_owned).into_iter();
        let words: Vec<String> = words.chain([format!("--worktree={}", handle.worktree)]).collect();
        match self.jvs.run(&words, Some(handle), std::future::pending()).await {
            Ok(CommandAnswer::Done { .. }) => Ok(()),
            Ok(failed) => Err(Box::new(answer::of(failed, None).into())),
            Err(trouble) => Err(Box::new(answer::no_answer(trouble).into())),
        }
    }

    /// Which operation would be taken back, by its id, and the question about it. What is done
    /// since then is not what a person agreed to.
    async fn undoing(&self, arguments: Arguments) -> Result<(Arguments, String), Box<Instead>> {
        let mut words = tool::words(Verb::Undo, &arguments);
        words.push("--dry-run".to_owned());
        let handle = arguments.handle.as_ref();
        match self.jvs.run(&words, handle, std::future::pending()).await {
            Ok(CommandAnswer::Done { data, .. }) => {
                let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
                let (op, what) = (text("op"), text("what"));
                let question = format!(
                    "Take this operation back: {what}? What is there now is kept as a snapshot. \
                     (Operation {op})"
                );
                Ok((arguments.naming("op", &op), question))
            }
            Ok(failed) => Err(Box::new(answer::of(failed, None).into())),
            Err(trouble) => Err(Box::new(answer::no_answer(trouble).into())),
        }
    }

    /// What a person is asked, `undoing` if that is what it is about, and what that is about
    /// besides the arguments: who has the lock that would be taken.
    async fn question(
        &self,
        tool: &Tool,
        arguments: &Arguments,
        undoing: String,
    ) -> Result<(String, Value), Box<Instead>> {
        let instead = |result: CallToolResult| Box::new(CallToolResponse::from(result));
        let words = ["lock", "status"].map(str::to_owned).into_iter();
        let worktree = arguments.worktree().map(|name| format!("--worktree={name}"));
        let words: Vec<String> = words.chain(worktree).collect();
        let told = self.jvs.run(&words, None, std::future::pending()).await;
        let lock = match told.map_err(|trouble| instead(answer::no_answer(trouble)))? {
            CommandAnswer::Done { data, .. } => data,
            failed @ CommandAnswer::Failed(_) => return Err(instead(answer::of(failed, None))),
        };
        let text = |value: &Value| value.as_str().unwrap_or("nobody").to_owned();
        let (worktree, reason) = (text(&lock["worktree"]), arguments.text("reason"));
        let reason = reason.unwrap_or_default();
        let holder = format!(
            "{} on {} (session {})",
            text(&lock["user"]),
            text(&lock["host"]),
            text(&lock["record"]["session_id"])
        );
        let question = match tool.verb {
            Verb::Steal => format!(
                "Take over the lock of worktree {worktree}, last held by {holder}? Reason given: \
                 {reason}"
            ),
            Verb::Reclaim => format!(
                "Take the lock of worktree {worktree} away from {holder}, who may be at work? \
                 Reason given: {reason}"
            ),
            Verb::Undo => undoing,
            _ => {
                let snapshot = arguments.text("snapshot").unwrap_or_default();
                let paths = arguments.texts("paths");
                let what = match paths.is_empty() {
                    true => "all files".to_owned(),
                    false => paths.join(", "),
                };
                format!(
                    "Replace {what} of worktree {worktree} by those of snapshot {snapshot}? What \
                     is there now is kept as a snapshot. Reason given: {reason}"
                )
            }
        };
        // A release leaves the token as it is.
        let is_free = lock["state"] == "free";
        Ok((question, json!([lock["fencing_token"], lock["record"]["epoch"], is_free])))
    }
}

/// Releases exactly that hold.
pub(crate) async fn release(jvs: &Jvs, handle: &Handle) {
    let words =
        ["lock".to_owned(), "release".to_owned(), format!("--worktree={}", handle.worktree)];
    let _ = jvs.run(&words, Some(handle), std::future::pending()).await;
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let able = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .build();
        let me = Implementation::new(NAME, env!("CARGO_PKG_VERSION"));
        ServerConfig::new(able).with_server_info(me).with_instructions(INSTRUCTIONS)
    }

    async fn on_custom_request(
        &self,
        asked: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let message = format!("there is no method {:?}", answer::brief(&asked.method));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tool::TOOLS.iter().map(Tool::shown).collect()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tool::find(&call.name) else {
            let known: Vec<_> = tool::TOOLS.iter().map(|tool| tool.name).collect();
            let known = known.join(", ");
            let name = answer::brief(&call.name);
            let message = format!("there is no tool {name:?}; there are {known}");
            return Err(ErrorData::invalid_params(message, None));
        };
        let sent = call.arguments.clone().unwrap_or_default();
        let arguments = match Arguments::check(tool, &sent) {
            Ok(arguments) => arguments,
            Err(WrongArguments(message)) => {
                return Ok(answer::refused(OwnRefusal::Arguments, &message, None).into());
            }
        };
        if let Some(handle) = &arguments.handle
            && !handle.is_of(&self.jvs.session)
        {
            let message = format!(
                "this handle is of session '{}', and this server speaks for '{}': call acquire",
                handle.session(),
                self.jvs.session
            );
            return Ok(answer::refused(OwnRefusal::Handle, &message, None).into());
        }
        let arguments = match tool.effect {
            Effect::Takes => match self.decided(tool, arguments, &call, &context).await {
                Ok(arguments) => arguments,
                Err(instead) => return Ok(*instead),
            },
            _ => arguments,
        };
        Ok(self.act(tool, &arguments, &context).await.into())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        if context.peer.peer_info().is_some() {
            self.notices.lists(&self.jvs, &context.peer).await;
        }
        let words = ["worktree", "list"].map(str::to_owned);
        let told = self.jvs.run(&words, None, context.ct.cancelled()).await;
        // Without a repository there is still what every repository has.
        let worktrees = match told {
            Ok(CommandAnswer::Done { data, .. }) => data,
            _ => Value::Null,
        };
        Ok(ListResourcesResult::with_all_items(resource::list(&worktrees)))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resource::templates()))
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = read.uri;
        let what = known(&uri)?;
        match self.jvs.run(&what.words(), None, context.ct.cancelled()).await {
            Ok(CommandAnswer::Done { data, .. }) => {
                let text = ResourceContents::text(data.to_string(), uri);
                let contents = vec![text.with_mime_type(resource::MIME)];
                Ok(ReadResourceResult::new(contents).into())
            }
            Ok(CommandAnswer::Failed(mut error)) => {
                answer::shorten(&mut error);
                let message = error["message"].as_str().unwrap_or_default().to_owned();
                let missing = error["code"] == "E_NOT_FOUND";
                let data = Some(json!({ "uri": answer::brief(&uri), "error": error }));
                Err(match missing {
                    true => ErrorData::resource_not_found(message, data),
                    false => ErrorData::internal_error(message, data),
                })
            }
            Err(trouble) => Err(ErrorData::internal_error(format!("{trouble:?}"), None)),
        }
    }

    async fn subscribe(
        &self,
        wanted: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        known(&wanted.uri)?;
        self.notices.subscribe(&wanted.uri, &self.jvs, &context.peer).await;
        Ok(())
    }

    async fn unsubscribe(
        &self,
        wanted: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.notices.unsubscribe(&wanted.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        wanted: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.resources_list_changed = wanted.resources_list_changed;
        let uris = wanted.resource_subscriptions.iter().flatten();
        let uris: Vec<String> = uris.filter(|uri| What::parse(uri).is_some()).cloned().collect();
        accepted.resource_subscriptions = (!uris.is_empty()).then_some(uris);
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        notice::listen(&self.jvs, &context).await;
        Ok(())
    }
}

fn known(uri: &str) -> Result<What, ErrorData> {
    What::parse(uri).ok_or_else(|| {
        let uri = answer::brief(uri);
        let message = format!("there is no resource {uri:?}; resources/list shows what there is");
        ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
    })
}
