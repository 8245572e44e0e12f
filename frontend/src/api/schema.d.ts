// Written by `npm run client` from the service's OpenAPI document; not to be edited.

export interface paths {
    "/access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Tokens And Sessions
         * @description Lists the tokens that are configured, without their hashes, and the sessions that are open in all processes.
         */
        get: operations["outbox_access_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/access/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End A Session
         * @description Ends a session in every process. Its token can still log in: `DELETE /access/tokens/{id}` prevents that.
         */
        delete: operations["outbox_access_end"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/access/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke A Token
         * @description Revokes a token for good, and ends its sessions, in every process within seconds. A new one takes a new entry.
         *
         *     The entry stays in the configuration until it is removed there.
         */
        delete: operations["outbox_access_revoke"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/alerts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Alerts
         * @description Lists alerts, the newest first, with what became of the messages about each, and how alerts are configured.
         */
        get: operations["outbox_alerts_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/alerts/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send A Test Message
         * @description Sends a test message to every webhook now, once, and says what each did with it. No alert is raised.
         */
        post: operations["outbox_alerts_test"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Attempts
         * @description Lists the latest or slowest attempts of a queue's handler, with their messages.
         *
         *     Reads the history, so workers must record it. The default time range is the last hour.
         */
        get: operations["outbox_attempts_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Audit
         * @description Lists the audit log, newest first: changes, failed changes, revealed secrets, logins, and denied requests.
         */
        get: operations["outbox_audit_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/backlog": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Backlog
         * @description Shows the waiting messages of the outbox by state and routing key, their ages, rates, and the depths of queues.
         *
         *     Figures are counted at most every two seconds; `as_of` is the time of the count. Counts above ten thousand in one state are
         *     estimates. If the broker is unavailable, `queues` is null and `degraded` contains `broker`.
         */
        get: operations["outbox_backlog_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chains": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Chains
         * @description Lists chains, newest first, each with its first message, its worst state, and its duration.
         *
         *     Reads the history: chains that are still in the outbox, or whose history was pruned, are missing.
         */
        get: operations["outbox_chains_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chains/{tracking_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Chain
         * @description Shows the chain of a message: causes, effects, and the outcome of each.
         *
         *     Times are database times. A message that only other messages refer to has the state `unknown`.
         */
        get: operations["outbox_chains_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/components": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Components
         * @description Lists relays, workers, archivers and maintenance tasks: status, activity, consumers, and applied pauses.
         *
         *     Includes the latest lost and stopped components, for up to a day.
         */
        get: operations["outbox_components_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Deliveries
         * @description Lists the messages in a PostgreSQL queue, in the order in which they are due.
         *
         *     With RabbitMQ, which cannot show a message without delivering it, the response is `not_supported`. A filter that takes
         *     longer than two seconds gets `filter_too_broad`.
         */
        get: operations["outbox_deliveries_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/dead-letter": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Dead-letter Deliveries
         * @description Ends messages in a queue as dead letters, without another attempt. Queues of the database only.
         *
         *     They keep the failures that they had, and stand in the group of the latest.
         */
        post: operations["outbox_deliveries_dead_letter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move Deliveries
         * @description Moves messages to the front or the back of their queue. Queues of the database only.
         *
         *     At the front, those that wait for their next attempt are due now. What is not due cannot go to the back. Among themselves
         *     they are in the order of their numbers. One with an ordering key keeps its place.
         */
        post: operations["outbox_deliveries_move"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry Deliveries
         * @description Makes messages in a queue due now that wait for their next attempt. Queues of the database only.
         */
        post: operations["outbox_deliveries_retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Delivery
         * @description Shows one message in a queue, why it is not handled yet, and what happens next.
         */
        get: operations["outbox_deliveries_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/discard": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Discard Dead Letters
         * @description Discards dead letters: they are kept, do not count as open, and can be restored.
         *
         *     With `purge`, discarded ones are deleted for good: this requires the role `admin`, a reason, and the token of a dry run.
         */
        post: operations["outbox_discard"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Dead Letters
         * @description Lists dead letters and messages that the relay parked: open ones, unless `status` says otherwise.
         *
         *     Pages do not shift while messages fail and are resolved: a page begins after the last item of the page before it. A message
         *     that fails again moves to the position of its latest failure. `total` and `facets` are counted on request; facets are up to
         *     a minute old, as `as_of` says.
         */
        get: operations["outbox_dlq_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Groups Of Dead Letters
         * @description Counts the dead letters that match the filter, by the fingerprint of their error, by queue or by routing key.
         *
         *     The largest group comes first. Groups are counted at most every five seconds; the previous counts are returned meanwhile,
         *     for up to a minute: `as_of` says when. Marks and notes are as they are now. A group is `reopened` if it failed again after
         *     it was marked as fixed, or if more dead letters are open than it was muted for.
         */
        get: operations["outbox_dlq_groups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq/groups/note": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set The Note Of A Group
         * @description Sets or removes the note of a group, which every viewer sees. The group need not have dead letters now.
         */
        put: operations["outbox_dlq_note"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq/groups/policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set The Requeue Policy Of A Group
         * @description Lets maintenance requeue the open dead letters of a group by itself: once an hour, the oldest `per_hour`.
         *
         *     Each time the first one goes ahead, and the others follow when it was handled. The policy stops itself when a message fails
         *     again, or when its operation is cancelled; setting it again lets it go on. A `per_hour` of null takes it away.
         */
        put: operations["outbox_dlq_policy"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq/groups/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Mark A Group
         * @description Marks a group as fixed or muted, or takes its mark away. The group need not have dead letters now.
         *
         *     What fails later reopens it: nothing needs to watch. A muted group does not count in the verdict.
         */
        put: operations["outbox_dlq_mark"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq/groups/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Group Of Dead Letters
         * @description Shows a group of failures with a common fingerprint, of every status, with the versions of its latest 10,000.
         *
         *     Its dead letters are those of `outbox_dlq_list` with `group_id`; `sample_id` is one of them, with a traceback.
         */
        get: operations["outbox_dlq_group"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Dead Letter
         * @description Shows one dead letter: its error, earlier failures, body, headers, what edits replaced, and the outcome of each requeue.
         *
         *     Values are masked; operators see them with `reveal=true`, which is written to the audit first. JSON is shown as it was
         *     written, so that large numbers keep their value. The first 262,144 bytes of a body are shown. Larger JSON is only shown
         *     revealed, because a part of a document cannot be masked. `outbox_dlq_body` returns the whole body.
         */
        get: operations["outbox_dlq_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/dlq/{id}/body": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download Body
         * @description Downloads the body unmasked. The download is written to the audit first.
         */
        get: operations["outbox_dlq_body"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream Events
         * @description Streams an event for each change of `backlog`, `dead_letters`, `operation`, `component`, `pauses`, `statistics` (a
         *     minute is complete), or `database`.
         *
         *     A client that sends `Last-Event-ID` receives the events that it missed. Without it, or if they are no longer available, the
         *     first event is `reset`: reload everything that you show. After 15 seconds without an event, a comment is sent. The stream
         *     ends after five minutes, or earlier when the session ends, the client falls behind, or the server stops: reconnect.
         */
        get: operations["outbox_events_stream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/export/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export Audit
         * @description Downloads the audit log entries that `outbox_audit_list` lists with the same filter, newest first.
         */
        get: operations["outbox_export_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/export/dlq": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export Dead Letters
         * @description Downloads the dead letters that `outbox_dlq_list` lists with the same filter, in the same order, masked.
         *
         *     Reads page by page: dead letters that change during the download may be missing.
         */
        get: operations["outbox_export_dlq"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/export/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export Messages
         * @description Downloads the messages that `outbox_messages_list` lists with the same filter, in the same order.
         *
         *     Reads page by page: messages that are sent during the download may be missing or appear twice. Each page may take two
         *     seconds to find.
         */
        get: operations["outbox_export_messages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/export/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export Operations
         * @description Downloads the operations that `outbox_operations_list` lists with the same filter, newest first, with progress.
         */
        get: operations["outbox_export_operations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check Liveness
         * @description Returns 200 while the process responds. Checks nothing else.
         */
        get: operations["outbox_health_live"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check Readiness
         * @description Returns 200 if the process is ready, or 503 with the parts that are unavailable.
         */
        get: operations["outbox_health_ready"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/verdict": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Verdict
         * @description Says whether the installation is healthy, and if not, what is wrong, since when, and what to do.
         *
         *     It covers the age and depth of outbox and queues, queues without a consumer, pauses, held, stalled and parked messages, the
         *     topology, components that are missing, late or lost, and dead letters. The dashboard, `outbox status`, `outbox doctor` and
         *     the gauges `outbox_health_…` show the same verdict, which is computed at most every two seconds. A database that does not
         *     answer is a finding.
         */
        get: operations["outbox_health_verdict"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Messages
         * @description Lists messages that are in the outbox, or kept there after sending.
         *
         *     Pending, scheduled and retrying ones are in the order of their due time; held ones by routing key; blocked ones, and those
         *     of one `ordering_key`, in sending order; parked and sent ones, and all together, newest first. A filter that would search
         *     for longer than two seconds is refused: `state`, `ordering_key`, and for held ones `routing_key`, have an index.
         */
        get: operations["outbox_messages_list"];
        put?: never;
        /**
         * Publish Message
         * @description Publishes a message, in one transaction with its audit entry.
         *
         *     The body is checked against the schema of the consumers that the routing key leads to; `force` skips that.
         */
        post: operations["outbox_messages_publish"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/messages/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel Messages
         * @description Takes messages out of the outbox before they are sent.
         *
         *     Nothing is lost: each becomes a discarded dead letter, which can be restored and requeued. Messages that wait for one of the
         *     same ordering key go on. What a relay is sending is skipped.
         */
        post: operations["outbox_messages_cancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/messages/reschedule": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reschedule Messages
         * @description Makes messages due at another time, or gives them another priority: ahead of others, or behind them.
         */
        post: operations["outbox_messages_reschedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/messages/send-now": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send Messages Now
         * @description Makes messages due now that are scheduled, retried later, held, stalled or blocked.
         *
         *     A held message is tried, and held again if there is still no queue. One of an ordering key still waits for those before it.
         */
        post: operations["outbox_messages_send_now"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/messages/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Message
         * @description Shows one message in the outbox, why it waits, and what happens next.
         */
        get: operations["outbox_messages_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Edit Message
         * @description Changes the routing key, the body or the headers of a message before it is sent.
         *
         *     A body is checked against the schema of the consumers that it is for. What was held or stalled is tried again. The version
         *     is that of `GET /messages/{id}`: if the message has changed since, nothing is done.
         */
        patch: operations["outbox_messages_edit"];
        trace?: never;
    };
    "/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Operations
         * @description Lists operations, newest first, each with its progress.
         */
        get: operations["outbox_operations_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Operation
         * @description Shows one operation: what was requested, by whom and why, its progress, and the results of what it sent again.
         */
        get: operations["outbox_operations_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operations/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel Operation
         * @description Cancels an operation: finished items stay done, and the others are as they were.
         */
        post: operations["outbox_operations_cancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operations/{id}/items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List The Items Of An Operation
         * @description Lists the items of an operation with their outcomes, those that failed first.
         *
         *     While it is active, items move from one outcome to another; a page shows the state at the time of the request.
         */
        get: operations["outbox_operations_items"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operations/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause Operation
         * @description Pauses an operation: no further batch begins until it is resumed.
         */
        post: operations["outbox_operations_pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/operations/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume Operation
         * @description Resumes a paused operation.
         */
        post: operations["outbox_operations_resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause Relays, Workers Or A Queue
         * @description Pauses a relay, a worker, or a queue within a second. Messages in flight are finished.
         *
         *     A repeated request replaces reason and end. The response lists the components that apply the pause so far: poll `/pauses`.
         */
        post: operations["outbox_pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pauses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Pauses
         * @description Lists active pauses, each with the components that apply it.
         */
        get: operations["outbox_pauses_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Queues
         * @description Lists queues: handlers, consumers, depth, age, rates, failures, handling times, pauses, dead letters, and findings.
         *
         *     Includes queues that a worker has consumed in the last day, and queues that are bound to an exchange. Rates, failures and
         *     handling times cover the last five complete minutes of all workers. Figures are read at most every two seconds. Fields that
         *     come from the broker are null while it is unavailable.
         */
        get: operations["outbox_queues_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queues/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Queue
         * @description Shows one queue with the fields of the list, and the starts of its workers with their versions.
         */
        get: operations["outbox_queues_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/requeue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Requeue Dead Letters
         * @description Sends dead letters again through the outbox, with their ids, each to the queue where it failed.
         *
         *     Up to 100 ids are done at once, with an outcome for each. More ids, a filter, a group, a rate or a canary make an operation
         *     (202), whose items are fixed now, and which runs wherever maintenance runs. With `dry_run` nothing is done: the answer says
         *     what would be done, and has the `confirm_token` that filters and groups require.
         */
        post: operations["outbox_requeue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore Dead Letters
         * @description Restores discarded dead letters to open. Requeued ones cannot be restored: they have been sent.
         */
        post: operations["outbox_restore"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End A Pause
         * @description Ends a pause. Other pauses of the same relay, worker or queue stay active, and are in the response.
         */
        post: operations["outbox_resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search
         * @description Searches everything by one text: numbers of messages, deliveries and dead letters; ids of messages and chains; parts of
         *     the names of queues, handlers, routing keys and components; words of dead letters, as `GET /dlq?q=` does,
         *     and parts of the errors of the newest 5,000.
         *
         *     Ids are looked for in the outbox, in queues of the database, in the history and among dead letters. Values in bodies, such
         *     as the number of an order, are found among dead letters, and in the newest 5,000 messages of the outbox and of queues of the
         *     database with bodies up to 16 KiB; what is masked is not found. Values at the paths of `OUTBOX_INDEX_KEYS`, or of the option
         *     `index_keys` of a consumer, are found in the whole history. A kind that takes too long is named in `incomplete`.
         */
        get: operations["outbox_search"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show The Current Principal
         * @description Shows the current principal, how it is authenticated, and its permissions.
         */
        get: operations["outbox_session_show"];
        put?: never;
        /**
         * Log In
         * @description Logs a browser in with a token. Sets a session cookie that scripts cannot read and other sites cannot use.
         *
         *     Ends the browser's previous session. Needs no authentication. After too many wrong tokens, further wrong ones get
         *     `too_many_logins` for a while.
         */
        post: operations["outbox_session_begin"];
        /**
         * Log Out
         * @description Logs out: ends the session and deletes its cookie. Has no effect on a token in the header.
         */
        delete: operations["outbox_session_end"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/session/methods": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show How To Log In
         * @description Shows how one can log in: with a token, or at a provider. Public.
         */
        get: operations["outbox_session_methods"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Statistics
         * @description Shows messages created, sent, processed, failed and dead-lettered per step, the backlog, and latencies.
         *
         *     Numbers cover all processes and survive restarts. Null means that no relay or no worker reported data; 0 means that nothing
         *     happened. A response has at most 2,000 points over all series: the step grows with the time range and the number of groups,
         *     and for old data to the hour or day that statistics are kept by.
         *
         *     Time ranges above one day are computed at most every five seconds; `as_of` is the time of the computation.
         */
        get: operations["outbox_stats_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/topology": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show Topology
         * @description Shows exchanges, queues, workers and their connections as nodes and edges, and warnings with a hint each.
         *
         *     Read on request, at most every ten seconds. If the broker is unavailable, the response contains what workers report.
         */
        get: operations["outbox_topology_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * AccessResponse
         * @description Who may log in, and who is logged in. Both are empty where the application authenticates.
         */
        AccessResponse: {
            /**
             * Sessions
             * @description The newest first, up to 1,000.
             */
            sessions: components["schemas"]["SessionResponse"][];
            /**
             * Tokens
             * @description As configured in the process that answers.
             */
            tokens: components["schemas"]["TokenResponse"][];
        };
        /**
         * Action
         * @description What is done to a dead letter.
         * @enum {string}
         */
        Action: "requeue" | "discard" | "restore" | "purge";
        /**
         * AlertDelivery
         * @description A message about an alert to one webhook.
         */
        AlertDelivery: {
            /** Attempts */
            attempts: number;
            /**
             * Due At
             * @description When it is sent, or sent again; null: it was sent, or is not sent again.
             */
            due_at: string | null;
            /**
             * Event
             * @enum {string}
             */
            event: "fired" | "resolved";
            /**
             * Last Error
             * @description Why the last attempt failed, or why it was not sent.
             */
            last_error: string | null;
            /** Sent At */
            sent_at: string | null;
            /**
             * Target
             * @description The host of the webhook, and a mark of its address.
             */
            target: string;
        };
        /**
         * AlertPage
         * @description A part of the alerts, the newest first.
         */
        AlertPage: {
            /** Items */
            items: components["schemas"]["AlertResponse"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page; null at the end.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page; null at the beginning.
             */
            previous: string | null;
            /** @description Null: no alerts are configured, and none are raised. */
            settings: components["schemas"]["AlertSettings"] | null;
            /** @description With `total=true` only. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * AlertResponse
         * @description Something that was wrong, or happened.
         */
        AlertResponse: {
            /**
             * Code
             * @description That of the finding, or `group_new`, `group_reopened`, `operation_ended`.
             */
            code: string;
            /** Deliveries */
            deliveries: components["schemas"]["AlertDelivery"][];
            /**
             * Fired At
             * Format: date-time
             */
            fired_at: string;
            /** Id */
            id: string;
            /**
             * Link
             * @description Where the dashboard shows it; empty: the dashboard's address is not configured.
             */
            link: string;
            /**
             * Resolved At
             * @description Null: the condition holds.
             */
            resolved_at: string | null;
            /**
             * Severity
             * @enum {string}
             */
            severity: "info" | "warning" | "error";
            /**
             * Started At
             * @description Since when the condition holds; null: not known.
             */
            started_at: string | null;
            /** Subject */
            subject: string;
            /** Subject Kind */
            subject_kind: string;
            /** Summary */
            summary: string;
        };
        /**
         * AlertSettings
         * @description How alerts are configured in the process that answers.
         */
        AlertSettings: {
            /** After Seconds */
            after_seconds: number;
            /** Codes */
            codes: string[];
            /** Dead Letters Above */
            dead_letters_above: number;
            /** Every Seconds */
            every_seconds: number;
            quiet: components["schemas"]["QuietHours"] | null;
            /** Targets */
            targets: string[];
        };
        /**
         * AlertTest
         * @description What became of the test message at each webhook.
         */
        AlertTest: {
            /** Items */
            items: components["schemas"]["TestedWebhook"][];
        };
        /**
         * AttemptOutcome
         * @description The outcome of an attempt; `DUPLICATE`: it had been handled before.
         * @enum {string}
         */
        AttemptOutcome: "processed" | "retried" | "dead_lettered" | "duplicate";
        /**
         * AuditEntry
         * @description An action that was done, failed, or was denied.
         */
        AuditEntry: {
            /** Action */
            action: string;
            /** Actor */
            actor: string;
            /**
             * Address
             * @description The client's IP address.
             */
            address: string;
            /**
             * Client Request Id
             * @description The `X-Request-ID` that the client sent. Not necessarily unique.
             */
            client_request_id: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Details */
            details: {
                [key: string]: unknown;
            };
            /** Id */
            id: string;
            /**
             * Outcome
             * @enum {string}
             */
            outcome: "done" | "denied" | "failed";
            /** Reason */
            reason: string | null;
            /**
             * Request Id
             * @description The id of the request in the log.
             */
            request_id: string;
            /** Role */
            role: string;
            /** Target */
            target: string;
        };
        /**
         * AuditPage
         * @description A page of the audit log.
         */
        AuditPage: {
            /** Items */
            items: components["schemas"]["AuditEntry"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page; null at the end.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page; null at the beginning.
             */
            previous: string | null;
            /** @description With `total=true` only. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * BacklogResponse
         * @description Waiting messages in the outbox and at the broker.
         */
        BacklogResponse: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            broker: components["schemas"]["BrokerKind"];
            /** @description Why the broker's figures are missing. */
            broker_error: components["schemas"]["Error"] | null;
            /**
             * Complete
             * @description False: a first estimate while exact figures are being computed.
             */
            complete: boolean;
            /**
             * Degraded
             * @description Sources that are unavailable. Their figures are missing, or as old as `as_of`.
             */
            degraded: ("broker" | "database")[];
            /**
             * Drained In Seconds
             * @description Time until nothing is due, at the current rates; null: the backlog is not shrinking, or no data.
             */
            drained_in_seconds: number | null;
            /**
             * Oldest Held Age Seconds
             * @description How long the oldest held message has been held.
             */
            oldest_held_age_seconds: number | null;
            /**
             * Oldest Pending Age Seconds
             * @description How long the oldest due message has been due.
             */
            oldest_pending_age_seconds: number | null;
            /**
             * Oldest Stalled Age Seconds
             * @description How long the oldest stalled message has been stalled.
             */
            oldest_stalled_age_seconds: number | null;
            other_routing_keys: components["schemas"]["OtherRoutingKeys"];
            per_second: components["schemas"]["Rates"];
            /**
             * Queues
             * @description Queues of the broker; null: no data.
             */
            queues: components["schemas"]["QueueDepth"][] | null;
            /**
             * Routing Keys
             * @description Routing keys with the most messages, in descending order.
             */
            routing_keys: components["schemas"]["RoutingKeyCounts"][];
            /** @description Sent messages that are still in the table, until clean-up. */
            sent_kept: components["schemas"]["Counted"];
            states: components["schemas"]["StateCounts"];
        };
        /**
         * BlockingPause
         * @description A pause that keeps relays from sending.
         */
        BlockingPause: {
            /** Expires At */
            expires_at: string | null;
            /**
             * Name
             * @description The relay; empty: all of them.
             */
            name: string;
            /** Reason */
            reason: string | null;
            /**
             * Scope
             * @constant
             */
            scope: "relay";
        };
        /**
         * BrokerKind
         * @description The broker that holds the queues. `other`: an object of the host, which does not report them.
         * @enum {string}
         */
        BrokerKind: "postgresql" | "rabbitmq" | "other";
        /**
         * CanaryRequest
         * @description The first `count` are sent first; the others follow when all of those were handled.
         *
         *     It stops the operation at the first attempt that fails, unless `stop_on_failure_ratio` tolerates some, or if not all results
         *     are known after `wait_seconds`.
         */
        CanaryRequest: {
            /** Count */
            count: number;
            /**
             * Wait Seconds
             * @description Longest wait for results.
             * @default 600
             */
            wait_seconds: number;
        };
        /**
         * CanaryResponse
         * @description How many are sent first, and the longest wait for their results.
         */
        CanaryResponse: {
            /** Count */
            count: number;
            /**
             * Wait Seconds
             * @description In seconds.
             */
            wait_seconds: number;
        };
        /**
         * CancelRequest
         * @description Takes messages out of the outbox before they are sent. They become discarded dead letters, and can be restored.
         */
        CancelRequest: {
            /**
             * Confirm Token
             * @description Of the dry run of the same request.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Say what would be done, and do nothing.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description At most so many, the first in their order.
             * @default 10000
             */
            max_items: number;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            selector: components["schemas"]["MessageSelector"];
        };
        /**
         * ChainAttempt
         * @description One attempt of a handler.
         */
        ChainAttempt: {
            /** Attempt */
            attempt: number;
            /**
             * Component
             * @description The worker that ran the handler.
             */
            component: string;
            /** Ended At */
            ended_at: string | null;
            error: components["schemas"]["Error"] | null;
            /**
             * Handling Seconds
             * @description How long the handler ran.
             */
            handling_seconds: number | null;
            /** @description `duplicate`: the message had been handled before. */
            outcome: components["schemas"]["AttemptOutcome"];
        };
        /**
         * ChainDelivery
         * @description The delivery of a message to one queue.
         */
        ChainDelivery: {
            /** Attempt Count */
            attempt_count: number;
            /**
             * Attempts
             * @description Recorded attempts, oldest first.
             */
            attempts: components["schemas"]["ChainAttempt"][];
            /**
             * Due At
             * @description When the next attempt is due. On RabbitMQ only for fixed delays.
             */
            due_at: string | null;
            /**
             * Handling Seconds
             * @description How long handlers ran, in all attempts together.
             */
            handling_seconds: number | null;
            /** Queue */
            queue: string;
            /**
             * Received At
             * @description When a handler first started on it.
             */
            received_at: string | null;
            state: components["schemas"]["ChainState"];
            /**
             * Waited Seconds
             * @description Time at the broker, before the first attempt.
             */
            waited_seconds: number | null;
            /** @description Why it waits in the queue; null: it does not wait. */
            waiting: components["schemas"]["DeliveryWait"] | null;
        };
        /**
         * ChainMessage
         * @description One message, and its delivery to each queue.
         */
        ChainMessage: {
            /** Deliveries */
            deliveries: components["schemas"]["ChainDelivery"][];
            /**
             * Depth
             * @description 0 for the first message of a chain.
             */
            depth: number;
            /**
             * Due At
             * @description When it will be sent, for a scheduled message.
             */
            due_at: string | null;
            /**
             * Held At
             * @description Since when it has been unroutable or stalled.
             */
            held_at: string | null;
            /** Id */
            id: string;
            /** @description The error that keeps it in the outbox. */
            last_error: components["schemas"]["Error"] | null;
            /**
             * Parent Id
             * @description The message whose handling published it.
             */
            parent_id: string | null;
            /** Published At */
            published_at: string | null;
            /** Relay */
            relay: string;
            /**
             * Requeue Count
             * @description How often it was requeued after being dead-lettered.
             */
            requeue_count: number;
            /** Routing Key */
            routing_key: string;
            /**
             * Sent At
             * @description When it left the outbox.
             */
            sent_at: string | null;
            /** @description The most urgent state of its deliveries, or its state in the outbox. */
            state: components["schemas"]["ChainState"];
            /**
             * Waited Seconds
             * @description Time in the outbox.
             */
            waited_seconds: number | null;
        };
        /**
         * ChainPage
         * @description Chains, newest first. With a filter, a page may have fewer items than `limit` even if there are more pages.
         */
        ChainPage: {
            /** Items */
            items: components["schemas"]["ChainSummary"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page; null at the end.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page; null at the beginning.
             */
            previous: string | null;
            /** @description With `total=true` only. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * ChainResponse
         * @description A chain of messages, as a list in depth-first order: children follow their parent.
         */
        ChainResponse: {
            /**
             * Critical Path
             * @description Message ids from the first message to the one with the latest event.
             */
            critical_path: string[];
            /**
             * Duration Seconds
             * @description Time from its first to its last recorded event.
             */
            duration_seconds: number | null;
            /**
             * Gaps
             * @description Missing records and their reasons, as sentences.
             */
            gaps: string[];
            /** Nodes */
            nodes: components["schemas"]["ChainMessage"][];
            /** Root Id */
            root_id: string;
            /** @description The worst state of its messages. */
            state: components["schemas"]["ChainState"];
            /**
             * Truncated
             * @description True: there are more messages. Request them with a larger `max_nodes`.
             */
            truncated: boolean;
        };
        /**
         * ChainState
         * @description The state of a message, or of its delivery to one queue, as far as it is on record.
         * @enum {string}
         */
        ChainState: "pending" | "scheduled" | "held" | "stalled" | "blocked" | "retrying" | "parked" | "sent" | "queued" | "in_flight" | "processed" | "dead" | "requeued" | "discarded" | "unknown";
        /**
         * ChainSummary
         * @description A chain in a list, from the first 200 entries of its history.
         */
        ChainSummary: {
            /** Dead Letter Count */
            dead_letter_count: number;
            /**
             * Duration Seconds
             * @description Time from `sent_at` to `last_activity_at`.
             */
            duration_seconds: number | null;
            /**
             * Last Activity At
             * @description Time of its latest event.
             */
            last_activity_at: string | null;
            /**
             * Message Count
             * @description How many of its messages are in the history.
             */
            message_count: number;
            /** Root Id */
            root_id: string;
            /**
             * Routing Key
             * @description The routing key of its first message.
             */
            routing_key: string;
            /**
             * Sent At
             * @description When its first message left the outbox.
             */
            sent_at: string | null;
            /** @description The worst state of its messages in the history. */
            state: components["schemas"]["ChainState"];
            /**
             * Truncated
             * @description True: the numbers cover only the first 200 entries.
             */
            truncated: boolean;
        };
        /**
         * ChangePlan
         * @description What a change would do now, and the token that allows it for a quarter of an hour.
         */
        ChangePlan: {
            /**
             * Action
             * @enum {string}
             */
            action: "cancel" | "send_now" | "reschedule" | "retry" | "move" | "dead_letter";
            /** Confirm Token */
            confirm_token: string;
            /**
             * Count
             * @description How many messages it would change; with the token never more are changed.
             */
            count: number;
            /**
             * Sample
             * @description The ids of the first of them.
             */
            sample: string[];
            /**
             * Token Expires At
             * Format: date-time
             */
            token_expires_at: string;
        };
        /**
         * ChangeResponse
         * @description The outcome for each message, in the order of the request.
         */
        ChangeResponse: {
            /**
             * Action
             * @enum {string}
             */
            action: "cancel" | "send_now" | "reschedule" | "retry" | "move" | "dead_letter";
            /** Counts */
            counts: {
                [key: string]: number;
            };
            /** Items */
            items: components["schemas"]["ChangedItem"][];
        };
        /**
         * ChangedItem
         * @description One message's part.
         */
        ChangedItem: {
            /** Id */
            id: string;
            /**
             * Outcome
             * @enum {string}
             */
            outcome: "done" | "skipped" | "refused" | "not_found";
            /**
             * Reason
             * @description Why it was not done; empty if it was.
             */
            reason: string;
        };
        /**
         * Code
         * @description What went wrong, in a word that scripts may rely on.
         * @enum {string}
         */
        Code: "invalid_cursor" | "cursor_mismatch" | "unauthenticated" | "forbidden" | "cross_site" | "read_only" | "not_found" | "method_not_allowed" | "conflict" | "not_supported" | "count_drifted" | "version_conflict" | "request_running" | "body_too_slow" | "body_too_large" | "invalid_request" | "filter_too_broad" | "invalid_edit" | "header_locked" | "key_reused" | "confirmation_required" | "too_many_logins" | "too_many_requests" | "too_many_streams" | "internal" | "schema_outdated" | "database_unavailable" | "broker_unavailable";
        /**
         * ComponentActivity
         * @description The activity that a component reports.
         */
        ComponentActivity: {
            /**
             * Failing Queues
             * @description Queues that pause themselves because of the errors of their handlers.
             */
            failing_queues?: string[] | null;
            /**
             * History Lost At
             * @description When it last failed to write one.
             */
            history_lost_at?: string | null;
            /**
             * History Lost Count
             * @description History entries that it failed to write since it started; missing: none.
             */
            history_lost_count?: number | null;
            /**
             * In Flight
             * @description Messages that it has taken and not yet settled.
             */
            in_flight?: number | null;
            last_failure?: components["schemas"]["ComponentFailure"] | null;
            /**
             * Last Sent At
             * @description Relays only: when it last sent a message.
             */
            last_sent_at?: string | null;
            /**
             * Oldest Due Age Seconds
             * @description Relays only: how long the oldest due message has been due.
             */
            oldest_due_age_seconds?: number | null;
            /**
             * Paused Queues
             * @description Paused queues.
             */
            paused_queues?: string[] | null;
            /**
             * Pending Pauses
             * @description Pauses that wait for messages in flight.
             */
            pending_pauses?: components["schemas"]["PauseKey"][] | null;
            /**
             * Per Second
             * @description Messages per second by outcome, over about the last ten seconds.
             */
            per_second: {
                [key: string]: number;
            };
            /**
             * Poison Messages
             * @description Messages that crashed workers too often, and run alone or wait to run alone; the latest ten.
             */
            poison_messages?: components["schemas"]["PoisonMessage"][] | null;
            /**
             * State
             * @description `starting`, `running`, `standing_by`, `paused`, `draining`, `isolating_a_poison_message`, `waiting_for_broker` or `waiting_for_database`.
             */
            state: string;
            /**
             * Totals
             * @description Messages since it started, by outcome, such as `sent` or `success`.
             */
            totals: {
                [key: string]: number;
            };
            /**
             * Unsent
             * @description Relays only: unsent messages in the outbox.
             */
            unsent?: number | null;
            /**
             * Waiting For
             * @description Why the `broker` or the `database` is unavailable.
             */
            waiting_for?: {
                [key: string]: string;
            } | null;
            /**
             * Wakes By
             * @description Relays only: how it detects new messages.
             */
            wakes_by?: ("listening" | "polling") | null;
        };
        /**
         * ComponentFailure
         * @description The latest failure of a component.
         */
        ComponentFailure: {
            error: components["schemas"]["Error"];
            /**
             * Failed At
             * Format: date-time
             */
            failed_at: string;
            /**
             * Subject
             * @description The routing key or the queue that it concerns.
             */
            subject: string;
        };
        /**
         * ComponentKind
         * @description What reports.
         * @enum {string}
         */
        ComponentKind: "relay" | "worker" | "archiver" | "maintenance";
        /**
         * ComponentResponse
         * @description A relay, worker, archiver or maintenance task, from its last heartbeat.
         */
        ComponentResponse: {
            /**
             * Activity
             * @description Its reported activity.
             */
            activity: components["schemas"]["ComponentActivity"];
            /**
             * Applied Pauses
             * @description Pauses that it applies.
             */
            applied_pauses: components["schemas"]["PauseKey"][];
            /**
             * Consumers
             * @description Consumers of a worker.
             */
            consumers: components["schemas"]["ConsumerResponse"][];
            /**
             * Heartbeat Interval Seconds
             * @description Interval of its heartbeats.
             */
            heartbeat_interval_seconds: number;
            /** Host */
            host: string;
            /** Id */
            id: string;
            kind: components["schemas"]["ComponentKind"];
            /**
             * Last Heartbeat At
             * Format: date-time
             */
            last_heartbeat_at: string;
            /** Name */
            name: string;
            /** Process Id */
            process_id: number;
            /**
             * Service Version
             * @description Release of the service; null: not configured.
             */
            service_version: string | null;
            /**
             * Started At
             * Format: date-time
             */
            started_at: string;
            /** @description `late`: two heartbeats are missing; `lost`: six are missing; `stopped`: it stopped cleanly. */
            status: components["schemas"]["ComponentStatus"];
            /**
             * Status Changed At
             * Format: date-time
             * @description Since when it has had this status.
             */
            status_changed_at: string;
            /** Stopped At */
            stopped_at: string | null;
            /** Version */
            version: string;
        };
        /**
         * ComponentStatus
         * @description Late: two signs of life are missing; lost: six are.
         * @enum {string}
         */
        ComponentStatus: "alive" | "late" | "lost" | "stopped";
        /**
         * Components
         * @description Every component with a recent heartbeat, and the active pauses.
         */
        Components: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            /** Items */
            items: components["schemas"]["ComponentResponse"][];
            /** Pauses */
            pauses: components["schemas"]["PauseResponse"][];
        };
        /**
         * ConsumerResponse
         * @description A consumer, as its worker reports it.
         */
        ConsumerResponse: {
            /** Batch */
            batch: boolean;
            /** Binding Key */
            binding_key: string;
            /**
             * Body
             * @description With `schemas=true`: the JSON schema of the body, if declared.
             */
            body?: {
                [key: string]: unknown;
            } | null;
            /**
             * Handler
             * @description The qualified name of its callback. Empty: the worker's release does not report it.
             * @default
             */
            handler: string;
            /**
             * History
             * @description Whether the worker records the outcome of each message in the history.
             * @default false
             */
            history: boolean;
            /** Inbox */
            inbox: boolean;
            /** Max Deliveries */
            max_deliveries: number;
            /** Ordered */
            ordered: boolean;
            /** Prefetch Count */
            prefetch_count: number;
            /** Queue */
            queue: string;
            retry: components["schemas"]["RetryPlan"];
            /** Timeout Seconds */
            timeout_seconds: number | null;
        };
        /**
         * Content
         * @description A body, as far as it can be shown.
         */
        Content: {
            /** Content */
            content: string | null;
            /** Content Type */
            content_type: string | null;
            /**
             * Encoding
             * @description What `content` is: JSON as it was written, other text, or bytes in base64; null: nothing is shown.
             */
            encoding: ("json" | "text" | "base64") | null;
            /**
             * Masked
             * @description Whether anything was hidden; `reveal=true` shows it.
             */
            masked: boolean;
            /**
             * Size
             * @description Bytes of the whole.
             */
            size: number;
            /**
             * Truncated
             * @description Whether `content` is only the beginning, or nothing because the body is too large.
             */
            truncated: boolean;
        };
        /**
         * Counted
         * @description A number of messages, exact or estimated.
         */
        Counted: {
            /**
             * Relation
             * @description `eq`: exact; `about`: estimated from a sample; `gte`: a lower bound, because counting stopped at a limit.
             * @enum {string}
             */
            relation: "eq" | "about" | "gte";
            /** Value */
            value: number;
        };
        /**
         * DeadLetterFilters
         * @description Conditions that a dead letter must match, all of them. Without `status` only open ones match; `any` matches every status.
         *
         *     Of several values of `queue`, `routing_key`, `exception_type` or `status`, one has to fit.
         */
        DeadLetterFilters: {
            /**
             * Exception Type
             * @description The type of the exception, with its module.
             */
            exception_type?: string | string[] | null;
            /**
             * Failed After
             * @description It failed for good at that time or later.
             */
            failed_after?: string | null;
            /**
             * Failed Before
             * @description It failed for good before that time.
             */
            failed_before?: string | null;
            /**
             * Group Id
             * @description The fingerprint of its group, see `outbox_dlq_groups`.
             */
            group_id?: string | null;
            /**
             * Message Id
             * @description Its own id.
             */
            message_id?: string | null;
            /**
             * Min Failures
             * @description So many attempts failed, or more.
             */
            min_failures?: number | null;
            /**
             * Q
             * @description Words of its error and masked body: words, "phrases", or, -not.
             */
            q?: string | null;
            /**
             * Queue
             * @description The queue where it failed.
             */
            queue?: string | string[] | null;
            /**
             * Routing Key
             * @description Its routing key, exactly.
             */
            routing_key?: string | string[] | null;
            /** @description What dead-lettered it: a `relay` that cannot send it, a failed `worker`, or the `broker`. */
            source?: components["schemas"]["Source"] | null;
            /**
             * Status
             * @description Its status; `open`: neither requeued nor discarded.
             * @default open
             */
            status: ("open" | "requeued" | "discarded" | "any") | ("open" | "requeued" | "discarded" | "any")[];
            /**
             * Tracking Id
             * @description An id of its chain: its own, or of a message that led to it.
             */
            tracking_id?: string | null;
        };
        /**
         * DeadLetterGroup
         * @description Dead letters with a common fingerprint, queue or routing key.
         */
        DeadLetterGroup: {
            /**
             * By
             * @enum {string}
             */
            by: "fingerprint" | "queue" | "routing_key";
            /** Count */
            count: number;
            /**
             * Count Since Requeue
             * @description How many failed after that; all of them if none was requeued.
             */
            count_since_requeue: number;
            /**
             * First Seen At
             * Format: date-time
             */
            first_seen_at: string;
            /**
             * Handlers
             * @description The qualified names of the callbacks of that queue.
             */
            handlers: string[];
            /**
             * Hourly Counts
             * @description How many failed in each of the last 24 hours, the current one last.
             */
            hourly_counts: number[];
            /**
             * Id
             * @description What a filter takes: as `group_id`, `queue` or `routing_key`.
             */
            id: string;
            /**
             * Last Requeued At
             * @description When one of them was requeued last.
             */
            last_requeued_at: string | null;
            /**
             * Last Seen At
             * Format: date-time
             */
            last_seen_at: string;
            /** @description Null: it has none. */
            mark: components["schemas"]["GroupMarkResponse"] | null;
            note: components["schemas"]["Note"] | null;
            /** Open Count */
            open_count: number;
            /**
             * Queue
             * @description Of groups by fingerprint; empty for messages that the relay parked on no queue.
             */
            queue: string | null;
            /** @description Null: it has none. */
            requeue_policy: components["schemas"]["RequeuePolicyResponse"] | null;
            /**
             * Sample Id
             * @description One of them, recorded last.
             */
            sample_id: string;
            /** @description Of groups by fingerprint. `reopened`: it was fixed or muted, but failed again, or too often. */
            status: components["schemas"]["GroupStatus"] | null;
            /** Title */
            title: string;
            /**
             * Versions
             * @description The releases in which the latest of the group failed, the latest first; as far as they are configured.
             */
            versions: components["schemas"]["GroupVersionResponse"][];
        };
        /**
         * DeadLetterGroups
         * @description The largest groups.
         */
        DeadLetterGroups: {
            /**
             * As Of
             * Format: date-time
             * @description When they were counted. Notes are as they are now.
             */
            as_of: string;
            /** Items */
            items: components["schemas"]["DeadLetterGroup"][];
            /**
             * Truncated
             * @description Whether there are more groups than `limit`.
             */
            truncated: boolean;
        };
        /**
         * DeadLetterLinks
         * @description Related resources. Fields with a default may be missing.
         */
        DeadLetterLinks: {
            /** Body */
            body: string;
            /**
             * Chain
             * @description Of the message, if it has an id.
             */
            chain?: string | null;
            /** Group */
            group: string;
            /**
             * Operation
             * @description The one that is to do something with it.
             */
            operation?: string | null;
            /** Self */
            self: string;
        };
        /**
         * DeadLetterOperation
         * @description What an operation is or was to do with it.
         */
        DeadLetterOperation: {
            action: components["schemas"]["Action"];
            /** Id */
            id: string;
            /**
             * Outcome
             * @enum {string}
             */
            outcome: "failed_again" | "refused" | "not_found" | "skipped" | "pending" | "requeued" | "discarded" | "restored" | "purged";
            /**
             * Reason
             * @description Why it was not done; of a message that failed again or is retried, the error.
             */
            reason: string | null;
            /** Settled At */
            settled_at: string | null;
        };
        /**
         * DeadLetterPage
         * @description A part of the list.
         */
        DeadLetterPage: {
            /**
             * Degraded
             * @description What could not be asked; the rest of the answer is right.
             */
            degraded: "broker"[];
            /** @description With `facets=true` only. */
            facets: components["schemas"]["Facets"] | null;
            /** Items */
            items: components["schemas"]["DeadLetterSummary"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page; null at the end.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page; null at the beginning.
             */
            previous: string | null;
            /** @description With `total=true` only. */
            total: components["schemas"]["Total"] | null;
            /** @description Dead letters that are still at the broker; null if PostgreSQL is the broker, or if there is no data. */
            unarchived: components["schemas"]["Unarchived"] | null;
        };
        /**
         * DeadLetterRequest
         * @description Ends deliveries as dead letters, without another attempt.
         */
        DeadLetterRequest: {
            /**
             * Confirm Token
             * @description Of the dry run of the same request.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Say what would be done, and do nothing.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description At most so many, the first in their order.
             * @default 10000
             */
            max_items: number;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            selector: components["schemas"]["DeliverySelector"];
        };
        /**
         * DeadLetterResponse
         * @description One dead letter with all its details.
         */
        DeadLetterResponse: {
            /** Attempt */
            attempt: number;
            body: components["schemas"]["Content"];
            /** Content Type */
            content_type: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Dead Letter Count
             * @description How often it was dead-lettered: more than once if it failed again after a requeue.
             */
            dead_letter_count: number;
            /** Editions */
            editions: components["schemas"]["EditionResponse"][];
            error: components["schemas"]["Error"];
            /** Exchange */
            exchange: string;
            external: components["schemas"]["ExternalLinks"];
            /**
             * Failed At
             * Format: date-time
             */
            failed_at: string;
            /**
             * Failure Count
             * @description How many attempts failed in all.
             */
            failure_count: number;
            /**
             * Failures
             * @description Every attempt that failed, oldest first.
             */
            failures: components["schemas"]["FailureResponse"][];
            /**
             * First Failed At
             * Format: date-time
             */
            first_failed_at: string;
            /**
             * Group Id
             * @description The fingerprint of its error, which those that failed alike share.
             */
            group_id: string;
            /**
             * Header Types
             * @description By JSON pointer, the AMQP type of a header whose type JSON lacks.
             */
            header_types: {
                [key: string]: string;
            };
            /** Headers */
            headers: {
                [key: string]: unknown;
            };
            /**
             * Hlc
             * @description Its place in the order of events, a large number.
             */
            hlc: string | null;
            /**
             * Id
             * @description `17`, or `outbox-17` for a message that the relay parked.
             */
            id: string;
            /**
             * Links
             * @description Relative to where the dead letters are listed.
             */
            links: components["schemas"]["DeadLetterLinks"];
            /** Message Id */
            message_id: string | null;
            /**
             * Operation Id
             * @description The operation that is to do something with it.
             */
            operation_id: string | null;
            /**
             * Operations
             * @description Those that had it, the latest first.
             */
            operations: components["schemas"]["DeadLetterOperation"][];
            /** Ordering Key */
            ordering_key: string | null;
            /**
             * Preview
             * @description The beginning of the body, masked, or its size.
             */
            preview: string;
            /** Properties */
            properties: {
                [key: string]: unknown;
            };
            /**
             * Queue
             * @description Empty for a message that the relay parked on its way to any queue.
             */
            queue: string;
            /**
             * Reason
             * @description Why it failed for good: `exhausted`, `rejected`, `undecodable`, `expired`, `refused`, …
             */
            reason: string;
            /**
             * Requeue Count
             * @description How often it was sent again, the last time included if that is what `status` says.
             */
            requeue_count: number;
            /**
             * Requeues
             * @description Every requeue and its outcome, oldest first, as far as the history goes.
             */
            requeues: components["schemas"]["RequeueResponse"][];
            /**
             * Resolution Reason
             * @description The reason that was given for it.
             */
            resolution_reason: string | null;
            /** Resolved At */
            resolved_at: string | null;
            /** Resolved By */
            resolved_by: string | null;
            /** Revealed */
            revealed: boolean;
            /**
             * Root Id
             * @description The first id of its chain.
             */
            root_id: string | null;
            /** Routing Key */
            routing_key: string;
            /**
             * Service Version
             * @description The release of the service whose handler failed last, as configured; null: not known.
             */
            service_version: string | null;
            /**
             * Size
             * @description Bytes of the body.
             */
            size: number;
            source: components["schemas"]["Source"];
            status: components["schemas"]["DeadLetterStatus"];
            /**
             * Tracking Ids
             * @description The chain that led to it, from its first message to itself.
             */
            tracking_ids: string[];
            /**
             * Version
             * @description What an edit must name, so that it overwrites no other edit.
             */
            version: number;
            /** Worker */
            worker: string;
        };
        /**
         * DeadLetterStatus
         * @description The status of a dead letter; `OPEN`: neither requeued nor discarded.
         * @enum {string}
         */
        DeadLetterStatus: "open" | "requeued" | "discarded";
        /**
         * DeadLetterSummary
         * @description One line of the list, without its payload.
         */
        DeadLetterSummary: {
            /** Attempt */
            attempt: number;
            /** Content Type */
            content_type: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Dead Letter Count
             * @description How often it was dead-lettered: more than once if it failed again after a requeue.
             */
            dead_letter_count: number;
            error: components["schemas"]["Error"];
            /** Exchange */
            exchange: string;
            /**
             * Failed At
             * Format: date-time
             */
            failed_at: string;
            /**
             * Failure Count
             * @description How many attempts failed in all.
             */
            failure_count: number;
            /**
             * First Failed At
             * Format: date-time
             */
            first_failed_at: string;
            /**
             * Group Id
             * @description The fingerprint of its error, which those that failed alike share.
             */
            group_id: string;
            /**
             * Id
             * @description `17`, or `outbox-17` for a message that the relay parked.
             */
            id: string;
            /** Message Id */
            message_id: string | null;
            /** Ordering Key */
            ordering_key: string | null;
            /**
             * Preview
             * @description The beginning of the body, masked, or its size.
             */
            preview: string;
            /**
             * Queue
             * @description Empty for a message that the relay parked on its way to any queue.
             */
            queue: string;
            /**
             * Reason
             * @description Why it failed for good: `exhausted`, `rejected`, `undecodable`, `expired`, `refused`, …
             */
            reason: string;
            /**
             * Requeue Count
             * @description How often it was sent again, the last time included if that is what `status` says.
             */
            requeue_count: number;
            /**
             * Resolution Reason
             * @description The reason that was given for it.
             */
            resolution_reason: string | null;
            /** Resolved At */
            resolved_at: string | null;
            /** Resolved By */
            resolved_by: string | null;
            /**
             * Root Id
             * @description The first id of its chain.
             */
            root_id: string | null;
            /** Routing Key */
            routing_key: string;
            /**
             * Service Version
             * @description The release of the service whose handler failed last, as configured; null: not known.
             */
            service_version: string | null;
            /**
             * Size
             * @description Bytes of the body.
             */
            size: number;
            source: components["schemas"]["Source"];
            status: components["schemas"]["DeadLetterStatus"];
            /**
             * Version
             * @description What an edit must name, so that it overwrites no other edit.
             */
            version: number;
            /** Worker */
            worker: string;
        };
        /**
         * DeliveryDetail
         * @description A message in a queue with all details, and the reason why it is not handled yet.
         */
        DeliveryDetail: {
            /** @description How many messages of the queue are due before it; null: not queued. */
            ahead_count: components["schemas"]["Total"] | null;
            /**
             * Attempt
             * @description Number of the running or next attempt.
             */
            attempt: number;
            /**
             * Begins In Seconds
             * @description Estimated time until those are handled, at the current rate.
             */
            begins_in_seconds: number | null;
            /** @description In an ordered queue: the delivery that must be handled first. */
            blocked_by: components["schemas"]["EarlierDelivery"] | null;
            /**
             * Body
             * @description The body as text, masked unless `reveal=true`; null if it is not text.
             */
            body: string | null;
            /**
             * Body Base64
             * @description With `reveal=true`: a body that is not text, in base64.
             */
            body_base64: string | null;
            /** Content Type */
            content_type: string | null;
            /**
             * Crash Count
             * @description How often a worker crashed with it, or lost its lease.
             */
            crash_count: number;
            /**
             * Created At
             * @description Null if the time is outside the supported range.
             */
            created_at: string | null;
            /**
             * Due At
             * @description When it is due; while in flight, when its lease ends unless renewed.
             */
            due_at: string | null;
            /** Exchange */
            exchange: string;
            /** Expires At */
            expires_at: string | null;
            external: components["schemas"]["ExternalLinks"];
            /**
             * Failures
             * @description Its failed attempts: the first and the latest ones.
             */
            failures: components["schemas"]["FailureResponse"][];
            /** Headers */
            headers: {
                [key: string]: unknown;
            } | null;
            /**
             * Hint
             * @description What an operator can do about it; null: nothing to do.
             */
            hint: string | null;
            /**
             * Id
             * @description The id of the delivery.
             */
            id: string;
            /** @description The error of the latest failed attempt. */
            last_error: components["schemas"]["Error"] | null;
            /**
             * Leased At
             * @description When its worker took it, by the worker's clock.
             */
            leased_at: string | null;
            /** @description Null: not in flight, or the worker sends no heartbeats. */
            leased_by: components["schemas"]["LeaseHolder"] | null;
            /** Masked */
            masked: boolean;
            /** Message Id */
            message_id: string;
            /** Ordering Key */
            ordering_key: string | null;
            /**
             * Preview
             * @description The beginning of the body, masked; for a binary or large body its type and size.
             */
            preview: string;
            /** Queue */
            queue: string;
            /**
             * Reason
             * @description Why it is not handled yet, and what happens next.
             */
            reason: string;
            /** Requeue Count */
            requeue_count: number;
            /**
             * Root Id
             * @description The id of the first message of its chain.
             */
            root_id: string | null;
            /** Routing Key */
            routing_key: string;
            /**
             * Size
             * @description Size of the body in bytes.
             */
            size: number;
            /**
             * State
             * @description `queued`: due; `in_flight`: a worker has taken it; `retrying`: an attempt failed and the next one is due later; `postponed`: due later for another reason, such as an earlier message of its ordering key.
             * @enum {string}
             */
            state: "queued" | "in_flight" | "retrying" | "postponed";
            /** Tracking Ids */
            tracking_ids: string[];
        };
        /**
         * DeliveryFilters
         * @description Filters of deliveries. A delivery must match all of them.
         */
        DeliveryFilters: {
            /**
             * Message Id
             * @description Id of the message.
             */
            message_id?: string | null;
            /**
             * Ordering Key
             * @description Exact ordering key.
             */
            ordering_key?: string | null;
            /**
             * Queue
             * @description Name of the queue.
             */
            queue: string;
            /**
             * Routing Key
             * @description Exact routing key.
             */
            routing_key?: string | null;
            /**
             * State
             * @description State of the delivery.
             */
            state?: ("queued" | "in_flight" | "retrying" | "postponed") | null;
        };
        /**
         * DeliveryPage
         * @description A page of deliveries, in the order in which they are due.
         */
        DeliveryPage: {
            /** Items */
            items: components["schemas"]["DeliverySummary"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page; null at the end.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page; null at the beginning.
             */
            previous: string | null;
            /** @description With `total=true` only. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * DeliverySelector
         * @description Which messages in queues to change: either ids or a filter.
         */
        DeliverySelector: {
            filter?: components["schemas"]["DeliveryFilters"] | null;
            /** Ids */
            ids?: number[] | null;
        };
        /**
         * DeliverySummary
         * @description A message in a queue, without its body.
         */
        DeliverySummary: {
            /**
             * Attempt
             * @description Number of the running or next attempt.
             */
            attempt: number;
            /** Content Type */
            content_type: string | null;
            /**
             * Crash Count
             * @description How often a worker crashed with it, or lost its lease.
             */
            crash_count: number;
            /**
             * Created At
             * @description Null if the time is outside the supported range.
             */
            created_at: string | null;
            /**
             * Due At
             * @description When it is due; while in flight, when its lease ends unless renewed.
             */
            due_at: string | null;
            /** Exchange */
            exchange: string;
            /** Expires At */
            expires_at: string | null;
            /**
             * Id
             * @description The id of the delivery.
             */
            id: string;
            /** @description The error of the latest failed attempt. */
            last_error: components["schemas"]["Error"] | null;
            /** Message Id */
            message_id: string;
            /** Ordering Key */
            ordering_key: string | null;
            /**
             * Preview
             * @description The beginning of the body, masked; for a binary or large body its type and size.
             */
            preview: string;
            /** Queue */
            queue: string;
            /** Requeue Count */
            requeue_count: number;
            /**
             * Root Id
             * @description The id of the first message of its chain.
             */
            root_id: string | null;
            /** Routing Key */
            routing_key: string;
            /**
             * Size
             * @description Size of the body in bytes.
             */
            size: number;
            /**
             * State
             * @description `queued`: due; `in_flight`: a worker has taken it; `retrying`: an attempt failed and the next one is due later; `postponed`: due later for another reason, such as an earlier message of its ordering key.
             * @enum {string}
             */
            state: "queued" | "in_flight" | "retrying" | "postponed";
        };
        /**
         * DeliveryWait
         * @description The reason why a delivery waits.
         */
        DeliveryWait: {
            /**
             * Ahead Count
             * @description How many messages are due before it, up to 10,001; null on RabbitMQ.
             */
            ahead_count: number | null;
            /** Pause Reason */
            pause_reason: string | null;
            /** Paused At */
            paused_at: string | null;
            /** Paused By */
            paused_by: string | null;
            /** @description `paused`: the queue or its worker is paused; `no_consumer`: no worker consumes the queue; `failing`: the worker pauses itself because the handler fails; `retry`: the next attempt is due later; `behind`: other messages are due before it; `next`: it is due, and no worker has taken it yet. */
            reason: components["schemas"]["WaitReason"];
            /**
             * Text
             * @description The reason as a sentence.
             */
            text: string;
        };
        /**
         * DiscardRequest
         * @description Puts dead letters aside; with `purge`, deletes those that were discarded, for good.
         */
        DiscardRequest: {
            /**
             * Confirm Token
             * @description Of the dry run of the same request.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Say what would be done, and do nothing.
             * @default false
             */
            dry_run: boolean;
            /**
             * Force
             * @description With `purge`: also what was not discarded.
             * @default false
             */
            force: boolean;
            /**
             * Max Items
             * @description At most so many, the oldest.
             */
            max_items?: number | null;
            /**
             * Purge
             * @description Delete for good what was discarded: takes the role admin and a reason.
             * @default false
             */
            purge: boolean;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            selector: components["schemas"]["Selector"];
        };
        /**
         * DryRunResponse
         * @description What would be done now, and the token that lets it be done.
         */
        DryRunResponse: {
            action: components["schemas"]["Action"];
            /** By Exception */
            by_exception: {
                [key: string]: number;
            };
            /** By Queue */
            by_queue: {
                [key: string]: number;
            };
            /**
             * Confirm Token
             * @description Good once, for the same request of the same person.
             */
            confirm_token: string;
            /**
             * Count
             * @description How many match.
             */
            count: number;
            /**
             * Dry Run
             * @default true
             * @constant
             */
            dry_run: true;
            /**
             * Expires At
             * Format: date-time
             */
            expires_at: string;
            /**
             * Sample
             * @description The first of them.
             */
            sample: components["schemas"]["SampledItem"][];
            /**
             * Warnings
             * @description What to think of before.
             */
            warnings: string[];
        };
        /**
         * EarlierDelivery
         * @description The first delivery with the same ordering key.
         */
        EarlierDelivery: {
            /** Id */
            id: string;
            /** Message Id */
            message_id: string;
            /**
             * State
             * @enum {string}
             */
            state: "queued" | "in_flight" | "retrying" | "postponed";
        };
        /**
         * EarlierMessage
         * @description The earlier message of the same ordering key.
         */
        EarlierMessage: {
            /** Id */
            id: string;
            /** Message Id */
            message_id: string | null;
            state: components["schemas"]["MessageState"];
        };
        /**
         * EditRequest
         * @description Another body, other headers, or both, for one dead letter that was read at `version`.
         *
         *     `body` is a JSON value, or with another `encoding` the text or the base64 of the bytes. `headers` replace all that there
         *     are; without them they stay, and `{}` removes them.
         */
        EditRequest: {
            /**
             * Body
             * @description The new body; left out, it stays as it is.
             */
            body?: unknown;
            /**
             * Encoding
             * @description What `body` is.
             * @default json
             * @enum {string}
             */
            encoding: "json" | "text" | "base64";
            /** Headers */
            headers?: {
                [key: string]: unknown;
            } | null;
            /**
             * Version
             * @description The `version` that the dead letter was read at.
             */
            version: number;
        };
        /**
         * EditionResponse
         * @description The payload as it was before an edit.
         */
        EditionResponse: {
            body: components["schemas"]["Content"];
            /** Headers */
            headers: {
                [key: string]: unknown;
            } | null;
            /**
             * Replaced At
             * Format: date-time
             */
            replaced_at: string;
            /** Replaced By */
            replaced_by: string | null;
            /** Version */
            version: number;
        };
        /**
         * EnvironmentResponse
         * @description Name and colour of the installation, from `OUTBOX_ENVIRONMENT`.
         */
        EnvironmentResponse: {
            /**
             * Colour
             * @enum {string}
             */
            colour: "red" | "amber" | "green" | "blue" | "grey";
            /** Name */
            name: string;
        };
        /**
         * Error
         * @description What went wrong, masked. Every error in every answer is this object.
         */
        Error: {
            /**
             * Message
             * @description What it says; cut in lists.
             */
            message: string;
            /**
             * Traceback
             * @description Null where the answer leaves it out.
             */
            traceback: string | null;
            /**
             * Type
             * @description The class of the exception, with its module; empty: not an exception, or not known.
             */
            type: string;
        };
        /**
         * ExternalLinks
         * @description Where other systems show a message, as configured. Null: not configured, or something that it names is not known.
         */
        ExternalLinks: {
            /** Log Url */
            log_url: string | null;
            /** Trace Url */
            trace_url: string | null;
        };
        /**
         * Facet
         * @description How many have one value.
         */
        Facet: {
            /** Count */
            count: number;
            /** Value */
            value: string;
        };
        /**
         * Facets
         * @description How many matches have which value, with the 20 most frequent values of each field.
         *
         *     A facet ignores the filter on its own field, so that other values can be chosen.
         */
        Facets: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            /** Exception Type */
            exception_type: components["schemas"]["Facet"][];
            /** Queue */
            queue: components["schemas"]["Facet"][];
            /**
             * Relation
             * @description `gte`: there are more dead letters than were looked at, the latest ones.
             * @enum {string}
             */
            relation: "eq" | "gte";
            /** Routing Key */
            routing_key: components["schemas"]["Facet"][];
            /** Source */
            source: components["schemas"]["Facet"][];
            /** Status */
            status: components["schemas"]["Facet"][];
        };
        /**
         * FailureResponse
         * @description One attempt that failed.
         */
        FailureResponse: {
            /** Attempt */
            attempt: number;
            error: components["schemas"]["Error"];
            /** Failed At */
            failed_at: string | null;
            /** Service Version */
            service_version: string | null;
            /** Worker */
            worker: string;
        };
        /**
         * GroupMarkRequest
         * @description What a group of failures with a common fingerprint is marked as.
         */
        GroupMarkRequest: {
            /**
             * Fixed In
             * @description With `fixed`, the release that the fix is part of: failures in releases that failed before do not reopen the group.
             */
            fixed_in?: string | null;
            /**
             * Id
             * @description The group's id, as `outbox_dlq_groups` shows it.
             */
            id: string;
            /**
             * Muted Above
             * @description With `muted`, and required: the group is reopened when more than so many are open.
             */
            muted_above?: number | null;
            /**
             * Status
             * @description `open` takes the mark away.
             * @enum {string}
             */
            status: "open" | "fixed" | "muted";
        };
        /**
         * GroupMarkResponse
         * @description What an operator marked a group as. Null: does not apply.
         */
        GroupMarkResponse: {
            /**
             * Count Since
             * @description How many failed after the group was marked as fixed; counted up to 1,000.
             */
            count_since: number;
            /**
             * Failed Since At
             * @description When the first of those failed.
             */
            failed_since_at: string | null;
            /**
             * Fixed In
             * @description The release that the fix is part of.
             */
            fixed_in: string | null;
            /**
             * Marked As
             * @description `open`: there is no mark.
             * @enum {string}
             */
            marked_as: "open" | "fixed" | "muted";
            /** Marked At */
            marked_at: string | null;
            /** Marked By */
            marked_by: string | null;
            /**
             * Muted Above
             * @description The group is reopened when more than so many are open.
             */
            muted_above: number | null;
        };
        /**
         * GroupNoteRequest
         * @description A note about a group, or none any more.
         */
        GroupNoteRequest: {
            /**
             * By
             * @enum {string}
             */
            by: "fingerprint" | "queue" | "routing_key";
            /**
             * Id
             * @description The group's id, as `outbox_dlq_groups` shows it.
             */
            id: string;
            /**
             * Note
             * @description Null, or nothing but spaces: the note is taken away.
             */
            note: string | null;
        };
        /**
         * GroupNoteResponse
         * @description A group, and what is noted about it now.
         */
        GroupNoteResponse: {
            /**
             * By
             * @enum {string}
             */
            by: "fingerprint" | "queue" | "routing_key";
            /** Id */
            id: string;
            note: components["schemas"]["Note"] | null;
        };
        /**
         * GroupStatus
         * @description What a group of failures with a common fingerprint is to operators.
         *
         *     `FIXED` and `MUTED` are what an operator marked it as; `REOPENED`: it was, but failed again, or more often than allowed.
         * @enum {string}
         */
        GroupStatus: "open" | "fixed" | "muted" | "reopened";
        /**
         * GroupVersionResponse
         * @description A release of the service in which dead letters of a group failed.
         */
        GroupVersionResponse: {
            /** Count */
            count: number;
            /**
             * First Failed At
             * Format: date-time
             */
            first_failed_at: string;
            /**
             * Last Failed At
             * Format: date-time
             */
            last_failed_at: string;
            /** Service Version */
            service_version: string;
        };
        /** HTTPValidationError */
        HTTPValidationError: {
            /** Detail */
            detail?: components["schemas"]["ValidationError"][];
        };
        /**
         * HandlingTimes
         * @description Percentiles of a handler's run time in seconds, estimated from buckets; null: it did not run.
         */
        HandlingTimes: {
            /** P50 */
            p50: number | null;
            /** P95 */
            p95: number | null;
            /** P99 */
            p99: number | null;
        };
        /**
         * HealthThresholdsResponse
         * @description From which figures on something is a finding, as configured.
         */
        HealthThresholdsResponse: {
            /**
             * Dead Letter Window Seconds
             * @description How long a dead letter counts as new.
             */
            dead_letter_window_seconds: number;
            /**
             * Late After Seconds
             * @description Age of a waiting message that is a warning.
             */
            late_after_seconds: number;
            /**
             * Lost For Seconds
             * @description How long a lost component counts that was not replaced.
             */
            lost_for_seconds: number;
            /**
             * Overdue After Seconds
             * @description Age of a waiting message that is an error.
             */
            overdue_after_seconds: number;
            /**
             * Queue Depth
             * @description Messages in one queue beyond which it is deep.
             */
            queue_depth: number;
        };
        /**
         * Identity
         * @description The current principal.
         */
        Identity: {
            /**
             * Authenticated By
             * @description `token`: token in the header; `session`: session cookie; `host`: the host application.
             * @enum {string}
             */
            authenticated_by: "token" | "session" | "host";
            /** @description Null: `OUTBOX_ENVIRONMENT` is not set. */
            environment: components["schemas"]["EnvironmentResponse"] | null;
            /**
             * Expires At
             * @description When the session ends; null without one.
             */
            expires_at: string | null;
            /** Name */
            name: string;
            permissions: components["schemas"]["Permissions"];
            /**
             * Read Only
             * @description Whether the installation refuses all changes, for every role.
             */
            read_only: boolean;
            role: components["schemas"]["Role"];
        };
        /**
         * ItemResponse
         * @description One dead letter's part.
         */
        ItemResponse: {
            /** Id */
            id: string;
            /**
             * Outcome
             * @enum {string}
             */
            outcome: "failed_again" | "refused" | "not_found" | "skipped" | "pending" | "requeued" | "discarded" | "restored" | "purged";
            /**
             * Reason
             * @description Why it was not done; empty if it was.
             */
            reason: string;
        };
        /**
         * LeaseHolder
         * @description The worker that holds the lease.
         */
        LeaseHolder: {
            /** Component Id */
            component_id: string;
            /** Host */
            host: string;
            /** Name */
            name: string;
            /** Process Id */
            process_id: number;
        };
        /**
         * Liveness
         * @description The process answers.
         */
        Liveness: {
            /**
             * Status
             * @default alive
             * @constant
             */
            status: "alive";
        };
        /**
         * Login
         * @description A login.
         */
        Login: {
            /**
             * Token
             * @description A token that `outbox token` created.
             */
            token: string;
        };
        /**
         * LoginMethods
         * @description How one can log in here.
         */
        LoginMethods: {
            /**
             * Provider
             * @description At an OpenID Connect provider, by `GET /session/oidc` in a browser.
             */
            provider: boolean;
            /**
             * Token
             * @description With a token, by `POST /session`.
             */
            token: boolean;
        };
        /**
         * Message
         * @description One message with all its details, and the reason why it waits.
         */
        Message: {
            /**
             * Alive Relay Count
             * @description Relays whose heartbeat is not late; null: not known.
             */
            alive_relay_count: number | null;
            /**
             * Attempt Count
             * @description Attempts to send it that were refused.
             */
            attempt_count: number;
            blocked_by: components["schemas"]["EarlierMessage"] | null;
            /**
             * Blocking Pauses
             * @description Pauses of relays; one without a name holds it for certain.
             */
            blocking_pauses: components["schemas"]["BlockingPause"][];
            /**
             * Body
             * @description The body as text, masked unless it was asked to be revealed; null for what is no text.
             */
            body: string | null;
            /**
             * Body Base64
             * @description Revealed, of a body that is no text.
             */
            body_base64: string | null;
            /** Content Type */
            content_type: string | null;
            /**
             * Created At
             * @description Null for a time that no calendar holds.
             */
            created_at: string | null;
            /** Dedup Key */
            dedup_key: string | null;
            /**
             * Deliveries
             * @description Its outcome in each queue; null: there is no history.
             */
            deliveries: components["schemas"]["MessageDelivery"][] | null;
            /**
             * Due At
             * @description Null: not before something else happens.
             */
            due_at: string | null;
            /**
             * Expiration Seconds
             * @description How long it may take, from the first sending on.
             */
            expiration_seconds: number | null;
            external: components["schemas"]["ExternalLinks"];
            /** Failed At */
            failed_at: string | null;
            /** Headers */
            headers: {
                [key: string]: unknown;
            } | null;
            /**
             * Held At
             * @description Since when it is unroutable or stalled; null: it is neither, or a release without such a time held it.
             */
            held_at: string | null;
            /**
             * Hint
             * @description What to do about it.
             */
            hint: string | null;
            /**
             * Id
             * @description The number of its row, in the order of writing.
             */
            id: string;
            /** @description What the broker said last, or what the message waits for. */
            last_error: components["schemas"]["Error"] | null;
            /** Masked */
            masked: boolean;
            /**
             * Message Id
             * @description The id that it keeps everywhere; null: made when it is sent.
             */
            message_id: string | null;
            /**
             * Next Attempt At
             * @description When it is tried again, at the earliest; of a held one, when its probe is.
             */
            next_attempt_at: string | null;
            /** Ordering Key */
            ordering_key: string | null;
            /**
             * Preview
             * @description The beginning of the body, masked; what else it is, and how large.
             */
            preview: string;
            /** Priority */
            priority: number;
            /**
             * Probe Id
             * @description Of a held or stalled message: the id of the row that is tried for all that go its way.
             */
            probe_id: string | null;
            /**
             * Reason
             * @description Why it is where it is, and what happens next.
             */
            reason: string;
            /** Requeue Count */
            requeue_count: number;
            /**
             * Root Id
             * @description The id of the message that its chain began with.
             */
            root_id: string | null;
            /** Routing Key */
            routing_key: string;
            /** Sent At */
            sent_at: string | null;
            /**
             * Size
             * @description Bytes of the body.
             */
            size: number;
            state: components["schemas"]["MessageState"];
            /**
             * Target Queue
             * @description The one queue that it is for, regardless of bindings.
             */
            target_queue: string | null;
            /** Tracking Ids */
            tracking_ids: string[];
            /**
             * Version
             * @description Changes with the routing key, the body and the headers; an edit names it.
             */
            version: number;
        };
        /**
         * MessageDelivery
         * @description Its last fact of the history in one queue.
         */
        MessageDelivery: {
            /** Attempt */
            attempt: number | null;
            error: components["schemas"]["Error"] | null;
            /**
             * Outcome
             * @enum {string}
             */
            outcome: "processed" | "retried" | "dead_lettered" | "requeued" | "duplicate";
            /** Queue */
            queue: string;
            /** Recorded At */
            recorded_at: string | null;
        };
        /**
         * MessageEditRequest
         * @description Another routing key, body or headers, or several of them, for one message that was read at `version`.
         */
        MessageEditRequest: {
            /**
             * Body
             * @description The new body; left out, it stays as it is.
             */
            body?: unknown;
            /**
             * Encoding
             * @description What `body` is.
             * @default json
             * @enum {string}
             */
            encoding: "json" | "text" | "base64";
            /**
             * Force
             * @description Also a body that a consumer's schema refuses.
             * @default false
             */
            force: boolean;
            /** Headers */
            headers?: {
                [key: string]: unknown;
            } | null;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            /**
             * Routing Key
             * @description Null: as it is.
             */
            routing_key?: string | null;
            /**
             * Version
             * @description The `version` that the dead letter was read at.
             */
            version: number;
        };
        /**
         * MessagePage
         * @description Part of the list, with how many there are in each state.
         */
        MessagePage: {
            /**
             * As Of
             * @description When they were counted.
             */
            as_of: string | null;
            /** Items */
            items: components["schemas"]["MessageSummary"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page; null at the end.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page; null at the beginning.
             */
            previous: string | null;
            sent_kept: components["schemas"]["Counted"] | null;
            /** @description As in the backlog; null: not counted yet. */
            states: components["schemas"]["StateCounts"] | null;
            /** @description With `total=true` only. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * MessageSelector
         * @description Which messages of the outbox to change: either ids or a filter.
         */
        MessageSelector: {
            filter?: components["schemas"]["WaitingFilters"] | null;
            /** Ids */
            ids?: number[] | null;
        };
        /**
         * MessageState
         * @description Where a row of the outbox is.
         * @enum {string}
         */
        MessageState: "pending" | "scheduled" | "held" | "stalled" | "blocked" | "retrying" | "parked" | "sent";
        /**
         * MessageSummary
         * @description A message of the outbox, without its body.
         */
        MessageSummary: {
            /**
             * Attempt Count
             * @description Attempts to send it that were refused.
             */
            attempt_count: number;
            /** Content Type */
            content_type: string | null;
            /**
             * Created At
             * @description Null for a time that no calendar holds.
             */
            created_at: string | null;
            /** Dedup Key */
            dedup_key: string | null;
            /**
             * Due At
             * @description Null: not before something else happens.
             */
            due_at: string | null;
            /** Failed At */
            failed_at: string | null;
            /**
             * Held At
             * @description Since when it is unroutable or stalled; null: it is neither, or a release without such a time held it.
             */
            held_at: string | null;
            /**
             * Id
             * @description The number of its row, in the order of writing.
             */
            id: string;
            /** @description What the broker said last, or what the message waits for. */
            last_error: components["schemas"]["Error"] | null;
            /**
             * Message Id
             * @description The id that it keeps everywhere; null: made when it is sent.
             */
            message_id: string | null;
            /** Ordering Key */
            ordering_key: string | null;
            /**
             * Preview
             * @description The beginning of the body, masked; what else it is, and how large.
             */
            preview: string;
            /** Priority */
            priority: number;
            /** Requeue Count */
            requeue_count: number;
            /**
             * Root Id
             * @description The id of the message that its chain began with.
             */
            root_id: string | null;
            /** Routing Key */
            routing_key: string;
            /** Sent At */
            sent_at: string | null;
            /**
             * Size
             * @description Bytes of the body.
             */
            size: number;
            state: components["schemas"]["MessageState"];
            /**
             * Target Queue
             * @description The one queue that it is for, regardless of bindings.
             */
            target_queue: string | null;
        };
        /**
         * Missing
         * @description Why there is no such order.
         */
        Missing: {
            /** Detail */
            detail: string;
        };
        /**
         * MoveRequest
         * @description Makes deliveries the first or the last of those that are due in their queue.
         */
        MoveRequest: {
            /**
             * Confirm Token
             * @description Of the dry run of the same request.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Say what would be done, and do nothing.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description At most so many, the first in their order.
             * @default 10000
             */
            max_items: number;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            selector: components["schemas"]["DeliverySelector"];
            /**
             * To
             * @description Before all that are due, or after them.
             * @enum {string}
             */
            to: "front" | "back";
        };
        /**
         * NewOrder
         * @description What a customer wants.
         */
        NewOrder: {
            /** Customer */
            customer: string;
            /**
             * Quantity
             * @default 1
             */
            quantity: number;
            /** Sku */
            sku: string;
        };
        /**
         * Note
         * @description A note about a group.
         */
        Note: {
            /**
             * Noted At
             * Format: date-time
             */
            noted_at: string;
            /** Noted By */
            noted_by: string;
            /** Text */
            text: string;
        };
        /**
         * NotedEvent
         * @description One thing that happened to the order.
         */
        NotedEvent: {
            /**
             * At
             * Format: date-time
             */
            at: string;
            /** Event */
            event: string;
        };
        /**
         * OperationItemPage
         * @description The items of an operation with their outcomes, those that failed first.
         */
        OperationItemPage: {
            /** Items */
            items: components["schemas"]["OperationItemResponse"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page; null at the end.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page; null at the beginning.
             */
            previous: string | null;
            /** @description With `total=true` only. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * OperationItemResponse
         * @description One dead letter of an operation, at its position in it.
         */
        OperationItemResponse: {
            /**
             * Failed Attempt Count
             * @description How many attempts failed since it was sent again.
             */
            failed_attempt_count: number;
            /** Id */
            id: string;
            /**
             * Outcome
             * @enum {string}
             */
            outcome: "failed_again" | "refused" | "not_found" | "skipped" | "pending" | "requeued" | "discarded" | "restored" | "purged";
            /** Position */
            position: number;
            /**
             * Reason
             * @description Why it was not done; of a message that failed again or is retried, the error.
             */
            reason: string;
            /**
             * Result
             * @description The result of its message; null: none was sent.
             */
            result: ("waiting" | "retrying" | "handled" | "failed_again" | "unknown") | null;
        };
        /**
         * OperationOptions
         * @description How an operation is done.
         */
        OperationOptions: {
            canary: components["schemas"]["CanaryResponse"] | null;
            /**
             * Destination
             * @description A queue, or null: the queue where each one failed.
             */
            destination: string | null;
            /** Force */
            force: boolean;
            /**
             * Max Items
             * @description At most so many, the oldest.
             */
            max_items: number | null;
            /**
             * Original Routing
             * @description By the routing key, instead of to one queue.
             */
            original_routing: boolean;
            /** Rate Per Second */
            rate_per_second: number | null;
            /**
             * Starts At
             * @description When it begins, or began; null: when it was created.
             */
            starts_at: string | null;
            /**
             * Stop On Failure Ratio
             * @description As it was asked for; null: 0.1, and a canary stops at the first failed attempt. 1: never.
             */
            stop_on_failure_ratio: number | null;
        };
        /**
         * OperationPage
         * @description Operations, the newest first.
         */
        OperationPage: {
            /** Items */
            items: components["schemas"]["OperationResponse"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page; null at the end.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page; null at the beginning.
             */
            previous: string | null;
            /** @description With `total=true` only. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * OperationResponse
         * @description A change of many dead letters, made in batches wherever maintenance runs: what was asked for, and how far it is.
         */
        OperationResponse: {
            action: components["schemas"]["Action"];
            /**
             * Active
             * @description Whether it has not ended: it is running or paused.
             */
            active: boolean;
            /**
             * Canary Ends At
             * @description Until then it waits for them at most; in the past, once the canary passed.
             */
            canary_ends_at: string | null;
            /**
             * Canary Started At
             * @description Since then it waits for the results of the canary.
             */
            canary_started_at: string | null;
            /**
             * Counts
             * @description How many items ended with each outcome.
             */
            counts: {
                [key: string]: number;
            };
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Failed Again Count
             * @description How many of those that were requeued failed again: `results.failed_again`.
             */
            failed_again_count: number;
            /** Finished At */
            finished_at: string | null;
            /** Id */
            id: string;
            /**
             * Item Count
             * @description How many dead letters it is for.
             */
            item_count: number;
            /**
             * Items Per Second
             * @description Since it was asked for, until its end.
             */
            items_per_second: number | null;
            /**
             * Next Batch At
             * @description When the next batch is due; null when none is.
             */
            next_batch_at: string | null;
            options: components["schemas"]["OperationOptions"];
            /**
             * Progress
             * @description The share of them.
             */
            progress: number;
            /** Reason */
            reason: string | null;
            /**
             * Remaining Seconds
             * @description Estimated from its progress; null: no estimate.
             */
            remaining_seconds: number | null;
            /** Requested By */
            requested_by: string | null;
            /** @description The results of the messages that it sent again; null: it sends none. */
            results: components["schemas"]["OperationResults"] | null;
            /**
             * Selector
             * @description What was selected. The dead letters were fixed at `created_at`.
             */
            selector: components["schemas"]["OperationSelector"];
            /**
             * Settled Count
             * @description How many of its items have an outcome, without those left out when it was ended.
             */
            settled_count: number;
            state: components["schemas"]["OperationState"];
            /**
             * Stop Reason
             * @description Why it stopped itself; null: it did not.
             */
            stop_reason: string | null;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
        };
        /**
         * OperationResults
         * @description How many messages a requeue has sent again, and their results, which add up to `sent`.
         *
         *     They are also kept current after the end of the operation.
         */
        OperationResults: {
            /**
             * Failed
             * @description Of all of them, those of which any attempt failed, also if handled since.
             */
            failed: number;
            /**
             * Failed Again
             * @description Dead-lettered again, or parked.
             */
            failed_again: number;
            /** Handled */
            handled: number;
            /**
             * Retrying
             * @description An attempt failed, and another one follows.
             */
            retrying: number;
            /**
             * Sent
             * @description How many were put into the outbox again.
             */
            sent: number;
            /**
             * Unknown
             * @description No data for seven days.
             */
            unknown: number;
            /**
             * Waiting
             * @description No attempt is on record yet.
             */
            waiting: number;
        };
        /**
         * OperationSelector
         * @description Which dead letters were selected. Fields with a default may be missing.
         */
        OperationSelector: {
            /**
             * Count
             * @description How many ids there were.
             */
            count?: number | null;
            filter?: components["schemas"]["DeadLetterFilters"] | null;
            /**
             * Ids
             * @description Of many the first.
             */
            ids?: string[] | null;
        };
        /**
         * OperationState
         * @description Running and paused ones go on; the others have ended: `STOPPED` by themselves, `CANCELLED` by a person.
         * @enum {string}
         */
        OperationState: "running" | "paused" | "cancelled" | "stopped" | "finished";
        /**
         * OrderStatus
         * @description How far an order has come.
         * @enum {string}
         */
        OrderStatus: "placed" | "paid" | "reserved" | "confirmed" | "rejected";
        /**
         * OrderView
         * @description The order, and what has happened to it so far, oldest first.
         */
        OrderView: {
            /** Customer */
            customer: string;
            /** Events */
            events: components["schemas"]["NotedEvent"][];
            /**
             * Id
             * Format: uuid
             */
            id: string;
            /**
             * Placed At
             * Format: date-time
             */
            placed_at: string;
            /** Quantity */
            quantity: number;
            /** Sku */
            sku: string;
            status: components["schemas"]["OrderStatus"];
        };
        /**
         * OtherRoutingKeys
         * @description All routing keys that are not listed, combined.
         */
        OtherRoutingKeys: {
            /**
             * Routing Key Count
             * @description How many routing keys; in an estimate, how many were sampled.
             */
            routing_key_count: number;
            total: components["schemas"]["Counted"];
        };
        /**
         * PauseKey
         * @description The key of a pause.
         */
        PauseKey: {
            /**
             * Name
             * @description Name of the relay, worker or queue. Empty: all relays, or all workers.
             */
            name: string;
            scope: components["schemas"]["PauseScope"];
        };
        /**
         * PauseRequest
         * @description A pause to set.
         */
        PauseRequest: {
            /**
             * Expires At
             * @description When it ends by itself; null: when resumed.
             */
            expires_at?: string | null;
            /**
             * Name
             * @description Name of the relay, worker or queue. Empty: all relays, or all workers.
             * @default
             */
            name: string;
            /**
             * Reason
             * @description Reason, shown to other operators.
             */
            reason?: string | null;
            scope: components["schemas"]["PauseScope"];
        };
        /**
         * PauseResponse
         * @description A pause, and the components that apply it.
         */
        PauseResponse: {
            /** Components */
            components: components["schemas"]["PausedComponent"][];
            /**
             * Expires At
             * @description When the pause ends by itself; null: when it is resumed.
             */
            expires_at: string | null;
            /**
             * Name
             * @description Name of the relay, worker or queue. Empty: all relays, or all workers.
             */
            name: string;
            /** Reason */
            reason: string | null;
            /**
             * Requested At
             * Format: date-time
             */
            requested_at: string;
            /** Requested By */
            requested_by: string | null;
            scope: components["schemas"]["PauseScope"];
            /**
             * State
             * @description `applied`: by all running components; `pending`: not yet by all; `unmet`: it covers no running component.
             * @enum {string}
             */
            state: "applied" | "pending" | "unmet";
        };
        /**
         * PauseScope
         * @description What can be paused.
         * @enum {string}
         */
        PauseScope: "relay" | "worker" | "queue";
        /**
         * PausedComponent
         * @description A component that a pause covers.
         */
        PausedComponent: {
            /** Id */
            id: string;
            kind: components["schemas"]["ComponentKind"];
            /** Name */
            name: string;
            /**
             * State
             * @description `applied`: it takes no new messages and has none in flight; `pending`: it has not confirmed the pause, or finishes messages in flight; `silent`: it is lost and cannot confirm.
             * @enum {string}
             */
            state: "applied" | "pending" | "silent";
            status: components["schemas"]["ComponentStatus"];
        };
        /**
         * Pauses
         * @description The active pauses.
         */
        Pauses: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            /** Items */
            items: components["schemas"]["PauseResponse"][];
        };
        /**
         * Permissions
         * @description Permissions of the current principal, from its role and the installation's read-only mode.
         */
        Permissions: {
            /**
             * Pause
             * @description Pause and resume relays, workers and queues.
             */
            pause: boolean;
            /**
             * Purge
             * @description Delete dead letters permanently.
             */
            purge: boolean;
            /**
             * Read Audit
             * @description Read the audit log.
             */
            read_audit: boolean;
            /**
             * Repair
             * @description Repair dead letters, run operations, set notes, change waiting messages.
             */
            repair: boolean;
            /**
             * Reveal
             * @description Reveal masked values.
             */
            reveal: boolean;
        };
        /**
         * PlacedOrder
         * @description The order's id, to ask for it.
         */
        PlacedOrder: {
            /**
             * Id
             * Format: uuid
             */
            id: string;
            status: components["schemas"]["OrderStatus"];
        };
        /**
         * PoisonMessage
         * @description A message that crashed its workers more often than its consumer allows.
         */
        PoisonMessage: {
            /** Message Id */
            message_id: string;
            /** Queue */
            queue: string;
            /**
             * Step
             * @description `waiting` for other handlers to end; `running` alone; `postponed`, because the others did not end in time.
             * @enum {string}
             */
            step: "waiting" | "running" | "postponed";
        };
        /**
         * ProblemDetails
         * @description RFC 9457, with a `code` that stays the same and the `request_id` that the log names.
         */
        ProblemDetails: {
            /** @description What scripts may rely on. */
            code: components["schemas"]["Code"];
            /**
             * Detail
             * @description What is wrong here, and what to do about it.
             */
            detail: string;
            /**
             * Request Id
             * @description What the log names the request by, and the header `X-Request-ID`.
             */
            request_id: string;
            /**
             * Status
             * @description The status of the answer, once more.
             */
            status: number;
            /**
             * Title
             * @description The problem in a sentence, the same each time.
             */
            title: string;
            /**
             * Type
             * @description `about:blank`: the code says all.
             * @default about:blank
             */
            type: string;
        } & {
            [key: string]: unknown;
        };
        /**
         * PublishRequest
         * @description A message to be published as an application would, such as an event to try a consumer with.
         */
        PublishRequest: {
            /**
             * Body
             * @description A JSON value; with another `encoding` the text, or the base64 of the bytes.
             */
            body: unknown;
            /**
             * Due At
             * @description When it is sent; null: now.
             */
            due_at?: string | null;
            /**
             * Encoding
             * @description What `body` is.
             * @default json
             * @enum {string}
             */
            encoding: "json" | "text" | "base64";
            /**
             * Force
             * @description Also a body that a consumer's schema refuses.
             * @default false
             */
            force: boolean;
            /** Headers */
            headers?: {
                [key: string]: unknown;
            } | null;
            /**
             * Ordering Key
             * @description Sent after those of the same key.
             */
            ordering_key?: string | null;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            /** Routing Key */
            routing_key: string;
        };
        /**
         * PublishedMessage
         * @description What was published.
         */
        PublishedMessage: {
            /** Message Id */
            message_id: string;
            /** Routing Key */
            routing_key: string;
        };
        /**
         * Quantiles
         * @description The 50th, 95th and 99th percentile of each step in seconds, estimated from buckets; null: no messages.
         */
        Quantiles: {
            /** P50 */
            p50: (number | null)[];
            /** P95 */
            p95: (number | null)[];
            /** P99 */
            p99: (number | null)[];
        };
        /**
         * QueueAttempt
         * @description One attempt of a queue's handler, with its message.
         */
        QueueAttempt: {
            /** Attempt */
            attempt: number;
            /**
             * Component
             * @description The worker that ran the handler.
             */
            component: string;
            /** Ended At */
            ended_at: string | null;
            error: components["schemas"]["Error"] | null;
            /**
             * Handling Seconds
             * @description How long the handler ran.
             */
            handling_seconds: number | null;
            /** Message Id */
            message_id: string;
            /** @description `duplicate`: the message had been handled before. */
            outcome: components["schemas"]["AttemptOutcome"];
            /**
             * Root Id
             * @description The id of the first message of its chain.
             */
            root_id: string;
            /** Routing Key */
            routing_key: string;
            /**
             * Waited Seconds
             * @description Time from publishing to the start of the handler, including earlier attempts.
             */
            waited_seconds: number | null;
        };
        /**
         * QueueAttemptsResponse
         * @description Attempts of a queue's handler.
         */
        QueueAttemptsResponse: {
            /**
             * After
             * Format: date-time
             */
            after: string;
            /**
             * Before
             * Format: date-time
             */
            before: string;
            /**
             * Examined
             * @description With `order=slowest`: largest number of latest attempts searched.
             */
            examined: number | null;
            /** Items */
            items: components["schemas"]["QueueAttempt"][];
        };
        /**
         * QueueBinding
         * @description A binding that routes messages to a queue.
         */
        QueueBinding: {
            /** Binding Key */
            binding_key: string;
            /** Exchange */
            exchange: string;
        };
        /**
         * QueueConsumer
         * @description A worker that consumes a queue, or was lost while consuming it.
         */
        QueueConsumer: {
            /** Component Id */
            component_id: string;
            /**
             * Handler
             * @description The qualified name of its callback. Empty: the worker's release does not report it.
             */
            handler: string;
            /** Host */
            host: string;
            /** Name */
            name: string;
            /** Prefetch Count */
            prefetch_count: number | null;
            /** Process Id */
            process_id: number;
            /**
             * Service Version
             * @description Release of the service; null: not configured.
             */
            service_version: string | null;
            /**
             * Started At
             * Format: date-time
             */
            started_at: string;
            /**
             * State
             * @description `paused` or `failing` for this queue, or the worker's state, such as `running`.
             */
            state: string;
            status: components["schemas"]["ComponentStatus"];
            /** Version */
            version: string;
        };
        /**
         * QueueDepth
         * @description A queue of the broker. Fields that the broker does not report are null.
         */
        QueueDepth: {
            /** Consumer Count */
            consumer_count: number | null;
            /** Exists */
            exists: boolean;
            /** @description Taken by a worker and not yet settled. */
            in_flight: components["schemas"]["Counted"] | null;
            /**
             * Oldest Age Seconds
             * @description How long the oldest message has been waiting.
             */
            oldest_age_seconds: number | null;
            /** Queue */
            queue: string;
            /** @description Waiting for a worker. */
            queued: components["schemas"]["Counted"] | null;
            /** @description Waiting for their next attempt; null on RabbitMQ, which uses delay queues. */
            retrying: components["schemas"]["Counted"] | null;
        };
        /**
         * QueueDestination
         * @description To this queue, which must exist.
         */
        QueueDestination: {
            /** Queue */
            queue: string;
        };
        /**
         * QueueDetail
         * @description A queue, and the starts of its workers with their versions.
         */
        QueueDetail: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            /** Bindings */
            bindings: components["schemas"]["QueueBinding"][];
            broker: components["schemas"]["BrokerKind"];
            /** Consumers */
            consumers: components["schemas"]["QueueConsumer"][];
            /** @description Open dead letters of the queue. */
            dead_letter_count: components["schemas"]["Total"] | null;
            /**
             * Drained In Seconds
             * @description Time until nothing waits, at the current rates; null: the queue is not shrinking, or no data.
             */
            drained_in_seconds: number | null;
            /** Exists */
            exists: boolean;
            /**
             * Failed Counts
             * @description Failed attempts in each step of the last hour.
             */
            failed_counts: number[];
            /**
             * Failed Share
             * @description Share of attempts that failed, from 0 to 1, in the same five minutes.
             */
            failed_share: number | null;
            /**
             * Findings
             * @description Findings of the health verdict about this queue, most severe first.
             */
            findings: components["schemas"]["VerdictFinding"][];
            /**
             * Handled Counts
             * @description Successful attempts in each step of the last hour, oldest first.
             */
            handled_counts: number[];
            /**
             * Handlers
             * @description Qualified names of the callbacks that handle its messages.
             */
            handlers: string[];
            /** @description Handling times in the same five minutes. */
            handling_seconds: components["schemas"]["HandlingTimes"];
            /** @description Handling times in one hour, a day earlier. */
            handling_seconds_day_before: components["schemas"]["HandlingTimes"];
            /** @description Taken by a worker and not yet settled. */
            in_flight: components["schemas"]["Counted"] | null;
            /** Name */
            name: string;
            /**
             * Oldest Age Seconds
             * @description How long the oldest message has been waiting, at least.
             */
            oldest_age_seconds: number | null;
            /**
             * Pauses
             * @description Active pauses of this queue, and of all workers.
             */
            pauses: components["schemas"]["PauseResponse"][];
            per_second: components["schemas"]["QueueRates"];
            /** @description Waiting for a worker. */
            queued: components["schemas"]["Counted"] | null;
            /** @description Waiting for their next attempt; null on RabbitMQ, which uses delay queues. */
            retrying: components["schemas"]["Counted"] | null;
            /**
             * State
             * @description The most severe state: findings that are errors, then a pause, then other findings. `behind`: messages wait too long; `deep`: too many messages wait; `failing`: the consumer pauses itself because the handler fails; `misconfigured`: limits or bindings are wrong.
             * @enum {string}
             */
            state: "ok" | "paused" | "no_consumer" | "behind" | "deep" | "failing" | "misconfigured" | "missing";
            /** Step Seconds */
            step_seconds: number;
            /** Step Starts At */
            step_starts_at: string[];
            /**
             * Worker Starts
             * @description Worker starts in the last day, newest first.
             */
            worker_starts: components["schemas"]["WorkerStart"][];
        };
        /**
         * QueueList
         * @description Every queue that a worker consumes, or that is bound to an exchange.
         */
        QueueList: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            broker: components["schemas"]["BrokerKind"];
            /** @description Why the broker's figures are missing. */
            broker_error: components["schemas"]["Error"] | null;
            /** Items */
            items: components["schemas"]["QueueSummary"][];
            /**
             * Step Seconds
             * @description Length of a step, and the interval of rates.
             */
            step_seconds: number;
            /**
             * Step Starts At
             * @description Start of each step of the last hour.
             */
            step_starts_at: string[];
        };
        /**
         * QueueRates
         * @description Messages per second over the last five complete minutes, or since data exists; null: no data.
         */
        QueueRates: {
            /**
             * Incoming
             * @description Messages that relays sent with a routing key that the queue is bound to.
             */
            incoming: number | null;
            /**
             * Outgoing
             * @description Messages that were handled or dead-lettered.
             */
            outgoing: number | null;
        };
        /**
         * QueueSummary
         * @description A queue. Fields without data, or that the broker does not report, are null.
         */
        QueueSummary: {
            /** Bindings */
            bindings: components["schemas"]["QueueBinding"][];
            /** Consumers */
            consumers: components["schemas"]["QueueConsumer"][];
            /** @description Open dead letters of the queue. */
            dead_letter_count: components["schemas"]["Total"] | null;
            /**
             * Drained In Seconds
             * @description Time until nothing waits, at the current rates; null: the queue is not shrinking, or no data.
             */
            drained_in_seconds: number | null;
            /** Exists */
            exists: boolean;
            /**
             * Failed Counts
             * @description Failed attempts in each step of the last hour.
             */
            failed_counts: number[];
            /**
             * Failed Share
             * @description Share of attempts that failed, from 0 to 1, in the same five minutes.
             */
            failed_share: number | null;
            /**
             * Findings
             * @description Findings of the health verdict about this queue, most severe first.
             */
            findings: components["schemas"]["VerdictFinding"][];
            /**
             * Handled Counts
             * @description Successful attempts in each step of the last hour, oldest first.
             */
            handled_counts: number[];
            /**
             * Handlers
             * @description Qualified names of the callbacks that handle its messages.
             */
            handlers: string[];
            /** @description Handling times in the same five minutes. */
            handling_seconds: components["schemas"]["HandlingTimes"];
            /** @description Handling times in one hour, a day earlier. */
            handling_seconds_day_before: components["schemas"]["HandlingTimes"];
            /** @description Taken by a worker and not yet settled. */
            in_flight: components["schemas"]["Counted"] | null;
            /** Name */
            name: string;
            /**
             * Oldest Age Seconds
             * @description How long the oldest message has been waiting, at least.
             */
            oldest_age_seconds: number | null;
            /**
             * Pauses
             * @description Active pauses of this queue, and of all workers.
             */
            pauses: components["schemas"]["PauseResponse"][];
            per_second: components["schemas"]["QueueRates"];
            /** @description Waiting for a worker. */
            queued: components["schemas"]["Counted"] | null;
            /** @description Waiting for their next attempt; null on RabbitMQ, which uses delay queues. */
            retrying: components["schemas"]["Counted"] | null;
            /**
             * State
             * @description The most severe state: findings that are errors, then a pause, then other findings. `behind`: messages wait too long; `deep`: too many messages wait; `failing`: the consumer pauses itself because the handler fails; `misconfigured`: limits or bindings are wrong.
             * @enum {string}
             */
            state: "ok" | "paused" | "no_consumer" | "behind" | "deep" | "failing" | "misconfigured" | "missing";
        };
        /**
         * QuietHours
         * @description Hours in which only errors are sent.
         */
        QuietHours: {
            /** Begins */
            begins: string;
            /** Ends */
            ends: string;
            /** Time Zone */
            time_zone: string;
        };
        /**
         * Rates
         * @description Messages per second, over up to the last five minutes; null: no data yet.
         */
        Rates: {
            /**
             * Incoming
             * @description Published messages.
             */
            incoming: number | null;
            /**
             * Outgoing
             * @description Messages that relays have sent.
             */
            outgoing: number | null;
        };
        /**
         * Readiness
         * @description State of each part of the process. The log has the reasons.
         */
        Readiness: {
            /** Parts */
            parts: {
                [key: string]: "ok" | "unavailable";
            };
            /**
             * Status
             * @enum {string}
             */
            status: "ready" | "not_ready";
        };
        /**
         * RepairResponse
         * @description The outcome for each id, in the order of the request.
         */
        RepairResponse: {
            action: components["schemas"]["Action"];
            /** Counts */
            counts: {
                [key: string]: number;
            };
            /** Items */
            items: components["schemas"]["ItemResponse"][];
        };
        /**
         * RequeueOutcome
         * @description The outcome of a requeue; `IN_PROGRESS`: none in the history yet.
         * @enum {string}
         */
        RequeueOutcome: "in_progress" | "processed" | "failed_again" | "duplicate";
        /**
         * RequeuePolicyRequest
         * @description Whether, and how fast, dead letters of a group are requeued by themselves.
         */
        RequeuePolicyRequest: {
            /**
             * Id
             * @description The group's id, as `outbox_dlq_groups` shows it.
             */
            id: string;
            /**
             * Per Hour
             * @description At most so many an hour; null: none.
             */
            per_hour: number | null;
        };
        /**
         * RequeuePolicyResponse
         * @description How dead letters of a group are requeued by themselves. Null: does not apply.
         */
        RequeuePolicyResponse: {
            /**
             * Operation Id
             * @description The latest operation that it started.
             */
            operation_id: number | null;
            /**
             * Per Hour
             * @description Once an hour at most so many open ones are requeued; null: there is no policy.
             */
            per_hour: number | null;
            /** Set At */
            set_at: string | null;
            /** Set By */
            set_by: string | null;
            /**
             * Started At
             * @description When that was.
             */
            started_at: string | null;
            /**
             * Stopped At
             * @description Nothing is requeued any more, until the policy is set again.
             */
            stopped_at: string | null;
            /** Stopped Because */
            stopped_because: string | null;
        };
        /**
         * RequeueRequest
         * @description Sends dead letters again. More than 100 ids, a filter, a group, a rate, a canary or a time make an operation.
         */
        RequeueRequest: {
            canary?: components["schemas"]["CanaryRequest"] | null;
            /**
             * Confirm Token
             * @description Of the dry run of the same request.
             */
            confirm_token?: string | null;
            /**
             * Destination
             * @description Another queue, or every queue that is bound now; null: the queue where each one failed.
             */
            destination?: components["schemas"]["QueueDestination"] | "original_routing" | null;
            /**
             * Dry Run
             * @description Say what would be done, and do nothing.
             * @default false
             */
            dry_run: boolean;
            /** @description For one id only. */
            edit?: components["schemas"]["EditRequest"] | null;
            /**
             * Force
             * @description Also those that are older than inboxes remember, and edits that a consumer's schema refuses.
             * @default false
             */
            force: boolean;
            /**
             * Max Items
             * @description At most so many, the oldest.
             */
            max_items?: number | null;
            /** Rate Per Second */
            rate_per_second?: number | null;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            selector: components["schemas"]["Selector"];
            /**
             * Starts At
             * @description Begin then, at most 30 days ahead, as an operation; null: now.
             */
            starts_at?: string | null;
            /**
             * Stop On Failure Ratio
             * @description Past this share of messages that failed an attempt, and were not handled since, it stops itself. Null: 0.1, and a canary stops at the first failed attempt. 1: it never does.
             */
            stop_on_failure_ratio?: number | null;
        };
        /**
         * RequeueResponse
         * @description One requeue of the message, and its outcome.
         */
        RequeueResponse: {
            /** Ended At */
            ended_at: string | null;
            /** @description `duplicate`: the queue's inbox knew it, and it was not processed again. */
            outcome: components["schemas"]["RequeueOutcome"];
            /**
             * Queue
             * @description Where it was requeued to; null: wherever its routing key leads.
             */
            queue: string | null;
            /**
             * Requeued At
             * Format: date-time
             */
            requeued_at: string;
            /** Requeued By */
            requeued_by: string;
        };
        /**
         * RescheduleRequest
         * @description Makes messages due at another time, or gives them another priority, or both.
         */
        RescheduleRequest: {
            /**
             * Confirm Token
             * @description Of the dry run of the same request.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Say what would be done, and do nothing.
             * @default false
             */
            dry_run: boolean;
            /**
             * Due At
             * @description When they are due; null: as it is. A past time means now.
             */
            due_at?: string | null;
            /**
             * Max Items
             * @description At most so many, the first in their order.
             * @default 10000
             */
            max_items: number;
            /**
             * Priority
             * @description Ahead of all with a lower one; null: as it is.
             */
            priority?: number | null;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            selector: components["schemas"]["MessageSelector"];
        };
        /**
         * RestoreRequest
         * @description Opens discarded dead letters again.
         */
        RestoreRequest: {
            /**
             * Confirm Token
             * @description Of the dry run of the same request.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Say what would be done, and do nothing.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description At most so many, the oldest.
             */
            max_items?: number | null;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            selector: components["schemas"]["Selector"];
        };
        /**
         * ResumeRequest
         * @description A pause to end, by its scope and name.
         */
        ResumeRequest: {
            /**
             * Name
             * @default
             */
            name: string;
            /**
             * Reason
             * @description Reason, for the audit log.
             */
            reason?: string | null;
            scope: components["schemas"]["PauseScope"];
        };
        /**
         * Resumed
         * @description The outcome of ending a pause.
         */
        Resumed: {
            /**
             * Resumed
             * @description False: no such pause was active.
             */
            resumed: boolean;
            /**
             * Still Paused By
             * @description Other active pauses that cover some of the same components.
             */
            still_paused_by: components["schemas"]["PauseResponse"][];
        };
        /**
         * RetryPlan
         * @description Retry delays of a consumer.
         */
        RetryPlan: {
            /**
             * Computed
             * @description Whether a function computes further delays.
             */
            computed: boolean;
            /**
             * Delays Seconds
             * @description The fixed delays.
             */
            delays_seconds: number[];
        };
        /**
         * RetryRequest
         * @description Makes deliveries due now that wait for their next attempt.
         */
        RetryRequest: {
            /**
             * Confirm Token
             * @description Of the dry run of the same request.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Say what would be done, and do nothing.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description At most so many, the first in their order.
             * @default 10000
             */
            max_items: number;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            selector: components["schemas"]["DeliverySelector"];
        };
        /**
         * Role
         * @description A viewer reads; an operator also repairs, pauses and reveals masked values; an admin also deletes for good.
         * @enum {string}
         */
        Role: "viewer" | "operator" | "admin";
        /**
         * RoutingKeyCounts
         * @description The backlog of one routing key.
         */
        RoutingKeyCounts: {
            /** @description Waiting for an earlier message with the same ordering key. */
            blocked: components["schemas"]["Counted"];
            /** @description Unroutable: waiting until a queue is bound for their routing key. */
            held: components["schemas"]["Counted"];
            /** @description Refused by the broker for good. Also listed as dead letters. */
            parked: components["schemas"]["Counted"];
            /** @description Due now, or being sent. */
            pending: components["schemas"]["Counted"];
            /** @description Refused by the broker. Will be sent again later. */
            retrying: components["schemas"]["Counted"];
            /** Routing Key */
            routing_key: string;
            /** @description Due later, as the publisher requested. */
            scheduled: components["schemas"]["Counted"];
            /** @description Waiting for a queue that is full or does not confirm, while the broker answers. */
            stalled: components["schemas"]["Counted"];
        };
        /**
         * SampledItem
         * @description One of the matches; its preview and error are masked.
         */
        SampledItem: {
            error: components["schemas"]["Error"];
            /**
             * Failed At
             * Format: date-time
             */
            failed_at: string;
            /** Id */
            id: string;
            /** Preview */
            preview: string;
            /** Queue */
            queue: string;
            /** Routing Key */
            routing_key: string;
            /** Size */
            size: number;
        };
        /**
         * SearchResponse
         * @description What fits, exact ids first.
         */
        SearchResponse: {
            /**
             * Incomplete
             * @description What could not be looked for in time, or while something is unavailable.
             */
            incomplete: ("message" | "delivery" | "dead_letter" | "chain" | "queue" | "routing_key" | "component")[];
            /** Items */
            items: components["schemas"]["SearchResult"][];
        };
        /**
         * SearchResult
         * @description Something that fits, and how to ask for it.
         */
        SearchResult: {
            /**
             * Detail
             * @description Its state, and what sets it apart.
             */
            detail: string;
            /**
             * Id
             * @description What its own endpoint takes: an id, a number, or a name.
             */
            id: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "message" | "delivery" | "dead_letter" | "chain" | "queue" | "routing_key" | "component";
            /**
             * Queue
             * @description The queue that it is in, or failed in.
             */
            queue: string | null;
            /** Title */
            title: string;
        };
        /**
         * Selector
         * @description Which dead letters to change: exactly one of the three. Without a status a filter matches what the action applies to.
         */
        Selector: {
            filter?: components["schemas"]["DeadLetterFilters"];
            /**
             * Group Id
             * @description The fingerprint of a group.
             */
            group_id?: string;
            /** Ids */
            ids?: (string | number)[];
        } & (unknown | unknown | unknown);
        /**
         * SendNowRequest
         * @description Makes messages due now, whatever they wait for: a time, a queue, or an earlier attempt.
         */
        SendNowRequest: {
            /**
             * Confirm Token
             * @description Of the dry run of the same request.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Say what would be done, and do nothing.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description At most so many, the first in their order.
             * @default 10000
             */
            max_items: number;
            /**
             * Priority
             * @description Ahead of all with a lower one; null: as it is.
             */
            priority?: number | null;
            /**
             * Reason
             * @description Why, for the record.
             */
            reason?: string | null;
            selector: components["schemas"]["MessageSelector"];
        };
        /**
         * SeriesResponse
         * @description Statistics per step, summed over all processes.
         */
        SeriesResponse: {
            /**
             * Backlog
             * @description Highest measured number of unsent messages; by queue, of messages that wait for a worker.
             */
            backlog: (number | null)[];
            /**
             * Created
             * @description Messages by time of creation, counted when they are sent. Not available by queue.
             */
            created: (number | null)[];
            /**
             * Dead
             * @description Messages that were dead-lettered.
             */
            dead: (number | null)[];
            /**
             * Duplicates
             * @description Messages that were skipped because they had been handled before.
             */
            duplicates: (number | null)[];
            /**
             * Failed
             * @description Failed attempts, some of which were `retried` or made a message `dead`.
             */
            failed: (number | null)[];
            /**
             * Group
             * @description The queue or routing key. Null: everything; `(others)`: all other groups.
             */
            group: string | null;
            /**
             * Handling Buckets
             * @description With `buckets=true`: histogram of each step.
             */
            handling_buckets: (number[] | null)[] | null;
            /** @description Time that handlers ran. */
            handling_seconds: components["schemas"]["Quantiles"];
            /**
             * Latency Buckets
             * @description With `buckets=true`: histogram of each step, by `bucket_bounds_seconds`.
             */
            latency_buckets: (number[] | null)[] | null;
            /** @description Time that messages spent in the outbox. */
            latency_seconds: components["schemas"]["Quantiles"];
            /**
             * Oldest Age Seconds
             * @description Highest measured age of the oldest due message, in the outbox or the queue. Null for RabbitMQ queues.
             */
            oldest_age_seconds: (number | null)[];
            /**
             * Processed
             * @description Messages that were handled.
             */
            processed: (number | null)[];
            /**
             * Retried
             * @description Failed attempts that were followed by a retry.
             */
            retried: (number | null)[];
            /**
             * Sent
             * @description Messages that relays sent. Not available by queue.
             */
            sent: (number | null)[];
        };
        /**
         * SessionResponse
         * @description A browser that is logged in, with a token or through a login provider.
         */
        SessionResponse: {
            /**
             * By Provider
             * @description Through a login provider, whose claims gave the role when it began.
             */
            by_provider: boolean;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Expires At
             * Format: date-time
             */
            expires_at: string;
            /** Id */
            id: string;
            /** Name */
            name: string;
            role: components["schemas"]["Role"];
        };
        /**
         * Source
         * @description What dead-lettered a message: a relay that could not send it, a worker whose handler failed, or the broker.
         * @enum {string}
         */
        Source: "relay" | "worker" | "broker";
        /**
         * StateCounts
         * @description Messages of the outbox by state.
         */
        StateCounts: {
            /** @description Waiting for an earlier message with the same ordering key. */
            blocked: components["schemas"]["Counted"];
            /** @description Unroutable: waiting until a queue is bound for their routing key. */
            held: components["schemas"]["Counted"];
            /** @description Refused by the broker for good. Also listed as dead letters. */
            parked: components["schemas"]["Counted"];
            /** @description Due now, or being sent. */
            pending: components["schemas"]["Counted"];
            /** @description Refused by the broker. Will be sent again later. */
            retrying: components["schemas"]["Counted"];
            /** @description Due later, as the publisher requested. */
            scheduled: components["schemas"]["Counted"];
            /** @description Waiting for a queue that is full or does not confirm, while the broker answers. */
            stalled: components["schemas"]["Counted"];
        };
        /**
         * StatsResponse
         * @description Series over a time range. All columns have one value per entry of `starts_at`.
         */
        StatsResponse: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            /**
             * Bucket Bounds Seconds
             * @description Upper bounds of the buckets. One more bucket counts longer times.
             */
            bucket_bounds_seconds: number[];
            /**
             * Complete
             * @description False: the step may still receive data, usually the newest one.
             */
            complete: boolean[];
            /**
             * From
             * Format: date-time
             * @description Start of the first step.
             */
            from: string;
            /**
             * Group By
             * @enum {string}
             */
            group_by: "none" | "queue" | "routing_key";
            /** Series */
            series: components["schemas"]["SeriesResponse"][];
            /** Starts At */
            starts_at: string[];
            /**
             * Step Reason
             * @description Why the step is longer than requested; null: it is as requested.
             */
            step_reason: string | null;
            /** Step Seconds */
            step_seconds: number;
            /**
             * To
             * Format: date-time
             * @description End of the last step.
             */
            to: string;
        };
        /**
         * TestedWebhook
         * @description What a webhook did with a test message.
         */
        TestedWebhook: {
            /** Delivered */
            delivered: boolean;
            /** Error */
            error: string | null;
            /** Target */
            target: string;
        };
        /**
         * TokenResponse
         * @description A token that is configured. Nothing that could be used to log in is known of it.
         */
        TokenResponse: {
            /** Expired */
            expired: boolean;
            /**
             * Id
             * @description What revokes it.
             */
            id: string;
            /**
             * Last Day
             * @description The last day on which it is valid, in UTC; null: it does not expire.
             */
            last_day: string | null;
            /** Name */
            name: string;
            /**
             * Revoked At
             * @description Null: it was not revoked.
             */
            revoked_at: string | null;
            /** Revoked By */
            revoked_by: string | null;
            role: components["schemas"]["Role"];
        };
        /**
         * Topology
         * @description Exchanges, queues and workers as a graph, with warnings.
         */
        Topology: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            /**
             * Bindings Known
             * @description False: only the bindings that workers report. To list all, configure the URL of RabbitMQ's management API.
             */
            bindings_known: boolean;
            broker: components["schemas"]["BrokerKind"];
            broker_error: components["schemas"]["Error"] | null;
            /**
             * Degraded
             * @description Sources that are unavailable.
             */
            degraded: ("broker" | "database")[];
            /** Edges */
            edges: components["schemas"]["TopologyEdge"][];
            /** Nodes */
            nodes: components["schemas"]["TopologyNode"][];
            /** Warnings */
            warnings: components["schemas"]["TopologyWarning"][];
        };
        /**
         * TopologyEdge
         * @description A route of messages between two nodes.
         */
        TopologyEdge: {
            /** Binding Key */
            binding_key: string | null;
            /**
             * Declared By
             * @description `broker`: exists at the broker; `worker`: only a worker reports it.
             * @enum {string}
             */
            declared_by: "broker" | "worker";
            /**
             * Kind
             * @enum {string}
             */
            kind: "binding" | "consumer" | "retry" | "dead_letter";
            /** Source */
            source: string;
            /** Target */
            target: string;
        };
        /**
         * TopologyNode
         * @description An exchange, a queue, or a worker. Fields without data, or that do not apply to the kind, are null.
         */
        TopologyNode: {
            /**
             * Consumer Count
             * @description Number of consumers.
             */
            consumer_count: number | null;
            /** Exists */
            exists: boolean;
            /**
             * Id
             * @description The id that edges and warnings refer to.
             */
            id: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "exchange" | "queue" | "retry" | "dead_letters" | "worker";
            /** Name */
            name: string;
            /**
             * Queued
             * @description Waiting for a worker.
             */
            queued: number | null;
            /**
             * Retrying
             * @description Waiting for their next attempt; on RabbitMQ in queues of the kind `retry`.
             */
            retrying: number | null;
        };
        /**
         * TopologyWarning
         * @description A problem of the topology.
         */
        TopologyWarning: {
            /**
             * Code
             * @description A stable code of the problem.
             * @enum {string}
             */
            code: "relays_disagree" | "unroutable" | "queue_without_consumer" | "subscription_without_consumer" | "exchange_missing" | "queue_missing" | "dead_letter_queue_missing" | "retry_queue_missing" | "dead_letters_vanish" | "queue_limit" | "old_binding";
            /**
             * Hint
             * @description How to fix it.
             */
            hint: string;
            /**
             * Node
             * @description The id of the node that it concerns.
             */
            node: string | null;
            /**
             * Severity
             * @enum {string}
             */
            severity: "warning" | "error";
            /** Summary */
            summary: string;
        };
        /**
         * Total
         * @description How many there are in all.
         */
        Total: {
            /**
             * Relation
             * @description `eq`: exactly; `gte`: at least, counting was ended.
             * @enum {string}
             */
            relation: "eq" | "gte";
            /** Value */
            value: number;
        };
        /**
         * Unarchived
         * @description How many dead letters the broker still has, which are in no list.
         */
        Unarchived: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            /** Count */
            count: number;
            /**
             * Queues
             * @description By queue, those that have any.
             */
            queues: {
                [key: string]: number;
            };
        };
        /** ValidationError */
        ValidationError: {
            /** Context */
            ctx?: Record<string, never>;
            /** Input */
            input?: unknown;
            /** Location */
            loc: (string | number)[];
            /** Message */
            msg: string;
            /** Error Type */
            type: string;
        };
        /**
         * VerdictFinding
         * @description Something that needs attention.
         */
        VerdictFinding: {
            /**
             * Code
             * @description A stable name of the problem.
             * @enum {string}
             */
            code: "database_unreachable" | "broker_unreachable" | "outbox_late" | "messages_parked" | "messages_held" | "messages_stalled" | "queue_late" | "queue_deep" | "paused" | "no_relay" | "no_worker" | "no_maintenance" | "no_archiver" | "component_late" | "component_lost" | "component_waiting" | "consumer_failing" | "history_lost" | "dead_letters" | "relays_disagree" | "unroutable" | "queue_without_consumer" | "subscription_without_consumer" | "exchange_missing" | "queue_missing" | "dead_letter_queue_missing" | "retry_queue_missing" | "dead_letters_vanish" | "queue_limit" | "old_binding";
            /**
             * Hint
             * @description What to do about it.
             */
            hint: string;
            /**
             * Severity
             * @enum {string}
             */
            severity: "warning" | "error";
            /**
             * Started At
             * @description Since when; null: no data.
             */
            started_at: string | null;
            /**
             * Subject
             * @description Its name; empty: all of that kind.
             */
            subject: string;
            /**
             * Subject Kind
             * @description `outbox`, `queue`, `exchange`, `relay`, `worker`, `archiver`, `maintenance`, `broker` or `database`.
             */
            subject_kind: string;
            /** Summary */
            summary: string;
        };
        /**
         * VerdictResponse
         * @description Whether all is well.
         */
        VerdictResponse: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            /**
             * Findings
             * @description The gravest first.
             */
            findings: components["schemas"]["VerdictFinding"][];
            /**
             * Started At
             * @description When the first finding of that severity began; null: none, or no data.
             */
            started_at: string | null;
            /**
             * Status
             * @description The worst severity of the findings.
             * @enum {string}
             */
            status: "ok" | "warning" | "error";
            thresholds: components["schemas"]["HealthThresholdsResponse"];
        };
        /**
         * WaitReason
         * @description Why a delivery waits; `FAILING`: its worker pauses itself, as its handler fails; `NEXT`: a worker will take it next.
         * @enum {string}
         */
        WaitReason: "paused" | "no_consumer" | "failing" | "retry" | "behind" | "next";
        /**
         * WaitingFilters
         * @description Which messages of the outbox: those in one state that fit all else.
         */
        WaitingFilters: {
            /**
             * Created After
             * @description Written then or later.
             */
            created_after?: string | null;
            /**
             * Created Before
             * @description Written before.
             */
            created_before?: string | null;
            /**
             * Message Id
             * @description Its own id.
             */
            message_id?: string | null;
            /**
             * Ordering Key
             * @description Its ordering key; those of one are listed in their order.
             */
            ordering_key?: string | null;
            /**
             * Routing Key
             * @description Its routing key; with `*` at the end, how it begins.
             */
            routing_key?: string | null;
            /**
             * State
             * @enum {string}
             */
            state: "pending" | "scheduled" | "held" | "stalled" | "blocked" | "retrying";
            /**
             * Target Queue
             * @description The one queue that it is for.
             */
            target_queue?: string | null;
            /**
             * Tracking Id
             * @description Its id, or that of one of its causes.
             */
            tracking_id?: string | null;
        };
        /**
         * WorkerStart
         * @description A start of a worker that consumes the queue.
         */
        WorkerStart: {
            /** Host */
            host: string;
            /** Name */
            name: string;
            /** Service Version */
            service_version: string | null;
            /**
             * Started At
             * Format: date-time
             */
            started_at: string;
            /** Version */
            version: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    outbox_access_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_access_end: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_access_revoke: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_alerts_list: {
        parameters: {
            query?: {
                /** @description At most so many items. */
                limit?: number;
                /** @description `next` or `previous` of a page before; with its filter. */
                cursor?: string | null;
                /** @description Whether to count all, up to 10,000. */
                total?: boolean;
                /** @description `open`: the condition holds; without it, all. */
                status?: ("open" | "resolved") | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertPage"];
                };
            };
            /** @description `invalid_cursor`: Invalid cursor or `cursor_mismatch`: The cursor belongs to another filter or order */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_alerts_test: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertTest"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_attempts_list: {
        parameters: {
            query: {
                queue: string;
                /** @description `slowest`: longest first, of the latest 20,000 in the time range. */
                order?: "latest" | "slowest";
                /** @description Attempts with any of these outcomes. Default: all. */
                outcome?: components["schemas"]["AttemptOutcome"][];
                /** @description Ended at this time or later. Default: `before` minus 1 h. */
                after?: string | null;
                /** @description Ended before this time. Default: now. */
                before?: string | null;
                /** @description Maximum number of items. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueAttemptsResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_audit_list: {
        parameters: {
            query?: {
                /** @description At most so many items. */
                limit?: number;
                /** @description `next` or `previous` of a page before; with its filter. */
                cursor?: string | null;
                /** @description Whether to count all, up to 10,000. */
                total?: boolean;
                /** @description The principal's exact name. */
                actor?: string | null;
                /** @description The action, such as `dlq.requeue`. */
                action?: string | null;
                /** @description `denied`: not allowed; `failed`: allowed, but failed. */
                outcome?: ("done" | "denied" | "failed") | null;
                /** @description The changed object. */
                target?: string | null;
                /** @description Created at this time or later. */
                created_after?: string | null;
                /** @description Created before this time. */
                created_before?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
            /** @description `invalid_cursor`: Invalid cursor or `cursor_mismatch`: The cursor belongs to another filter or order */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_backlog_show: {
        parameters: {
            query?: {
                /** @description Routing keys to list. The others are combined. */
                routing_keys?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BacklogResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_chains_list: {
        parameters: {
            query?: {
                /** @description Exact routing key of the first message. */
                routing_key?: string | null;
                /** @description The worst state of its messages. */
                state?: components["schemas"]["ChainState"] | null;
                /** @description The first message was sent at this time or later. */
                sent_after?: string | null;
                /** @description The first message was sent before this time. */
                sent_before?: string | null;
                /** @description Maximum number of items. */
                limit?: number;
                /** @description `next` or `previous` of an earlier page with the same filter. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChainPage"];
                };
            };
            /** @description `invalid_cursor`: Invalid cursor or `cursor_mismatch`: The cursor belongs to another filter or order */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_chains_show: {
        parameters: {
            query?: {
                /** @description The id, if a path cannot contain it: `..` */
                id?: string | null;
                /** @description Maximum number of messages. */
                max_nodes?: number;
            };
            header?: never;
            path: {
                /** @description The id of any message of the chain. */
                tracking_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChainResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_components_list: {
        parameters: {
            query?: {
                /** @description Include the JSON schemas of message bodies. */
                schemas?: boolean;
                /** @description Lost and stopped components to list, the latest. */
                ended?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Components"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_deliveries_list: {
        parameters: {
            query: {
                /** @description At most so many items. */
                limit?: number;
                /** @description `next` or `previous` of a page before; with its filter. */
                cursor?: string | null;
                /** @description Whether to count all, up to 10,000. */
                total?: boolean;
                /** @description Name of the queue. */
                queue: string;
                /** @description State of the delivery. */
                state?: ("queued" | "in_flight" | "retrying" | "postponed") | null;
                /** @description Exact routing key. */
                routing_key?: string | null;
                /** @description Exact ordering key. */
                ordering_key?: string | null;
                /** @description Id of the message. */
                message_id?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryPage"];
                };
            };
            /** @description `invalid_cursor`: Invalid cursor or `cursor_mismatch`: The cursor belongs to another filter or order */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_supported`: The broker does not support this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_deliveries_dead_letter: {
        parameters: {
            query?: never;
            header?: {
                /** @description Your name for this change: asked for again within a day, it is answered again and not done again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeadLetterRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeResponse"] | components["schemas"]["ChangePlan"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_supported`: The broker does not support this or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_deliveries_move: {
        parameters: {
            query?: never;
            header?: {
                /** @description Your name for this change: asked for again within a day, it is answered again and not done again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MoveRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeResponse"] | components["schemas"]["ChangePlan"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_supported`: The broker does not support this or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_deliveries_retry: {
        parameters: {
            query?: never;
            header?: {
                /** @description Your name for this change: asked for again within a day, it is answered again and not done again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RetryRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeResponse"] | components["schemas"]["ChangePlan"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_supported`: The broker does not support this or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_deliveries_show: {
        parameters: {
            query?: {
                /** @description Show masked values, for operators. Writes an audit entry. */
                reveal?: boolean;
            };
            header?: never;
            path: {
                /** @description Id of the delivery. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryDetail"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_supported`: The broker does not support this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_discard: {
        parameters: {
            query?: never;
            header?: {
                /** @description Your name for this change: asked for again within a day, it is answered again and not done again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DiscardRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RepairResponse"] | components["schemas"]["DryRunResponse"];
                };
            };
            /** @description An operation was made of it, whose letters are fixed now, and which goes on in batches. */
            202: {
                headers: {
                    /** @description Where the operation is. */
                    location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `count_drifted`: The selected dead letters have changed since the dry run or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_dlq_list: {
        parameters: {
            query?: {
                /** @description At most so many items. */
                limit?: number;
                /** @description `next` or `previous` of a page before; with its filter. */
                cursor?: string | null;
                /** @description Whether to count all, up to 10,000. */
                total?: boolean;
                /** @description What dead-lettered it: a `relay` that cannot send it, a failed `worker`, or the `broker`. */
                source?: components["schemas"]["Source"] | null;
                /** @description The queue where it failed. */
                queue?: string | string[] | null;
                /** @description Its routing key, exactly. */
                routing_key?: string | string[] | null;
                /** @description The type of the exception, with its module. */
                exception_type?: string | string[] | null;
                /** @description The fingerprint of its group, see `outbox_dlq_groups`. */
                group_id?: string | null;
                /** @description Its status; `open`: neither requeued nor discarded. */
                status?: ("open" | "requeued" | "discarded" | "any") | ("open" | "requeued" | "discarded" | "any")[];
                /** @description An id of its chain: its own, or of a message that led to it. */
                tracking_id?: string | null;
                /** @description Its own id. */
                message_id?: string | null;
                /** @description It failed for good at that time or later. */
                failed_after?: string | null;
                /** @description It failed for good before that time. */
                failed_before?: string | null;
                /** @description So many attempts failed, or more. */
                min_failures?: number | null;
                /** @description Words of its error and masked body: words, "phrases", or, -not. */
                q?: string | null;
                /** @description By the time of death, the latest first or last. */
                sort?: "newest" | "oldest";
                /** @description Whether to count by source, status, queue, exception type and routing key. */
                facets?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetterPage"];
                };
            };
            /** @description `invalid_cursor`: Invalid cursor or `cursor_mismatch`: The cursor belongs to another filter or order */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_dlq_groups: {
        parameters: {
            query?: {
                /** @description What dead-lettered it: a `relay` that cannot send it, a failed `worker`, or the `broker`. */
                source?: components["schemas"]["Source"] | null;
                /** @description The queue where it failed. */
                queue?: string | string[] | null;
                /** @description Its routing key, exactly. */
                routing_key?: string | string[] | null;
                /** @description The type of the exception, with its module. */
                exception_type?: string | string[] | null;
                /** @description The fingerprint of its group, see `outbox_dlq_groups`. */
                group_id?: string | null;
                /** @description Its status; `open`: neither requeued nor discarded. */
                status?: ("open" | "requeued" | "discarded" | "any") | ("open" | "requeued" | "discarded" | "any")[];
                /** @description An id of its chain: its own, or of a message that led to it. */
                tracking_id?: string | null;
                /** @description Its own id. */
                message_id?: string | null;
                /** @description It failed for good at that time or later. */
                failed_after?: string | null;
                /** @description It failed for good before that time. */
                failed_before?: string | null;
                /** @description So many attempts failed, or more. */
                min_failures?: number | null;
                /** @description Words of its error and masked body: words, "phrases", or, -not. */
                q?: string | null;
                /** @description What the dead letters of one group have in common; the fingerprint is that of the error. */
                by?: "fingerprint" | "queue" | "routing_key";
                /** @description Only groups of these statuses, with `by=fingerprint`. Without it, all. */
                group_status?: components["schemas"]["GroupStatus"] | components["schemas"]["GroupStatus"][] | null;
                /** @description Most groups, the largest first. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetterGroups"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_dlq_note: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GroupNoteRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupNoteResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_dlq_policy: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RequeuePolicyRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequeuePolicyResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_dlq_mark: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GroupMarkRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupMarkResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_dlq_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its fingerprint. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetterGroup"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_dlq_show: {
        parameters: {
            query?: {
                /** @description Unmasked; for operators, and written down in the audit. */
                reveal?: boolean;
            };
            header?: never;
            path: {
                /** @description `17`, or `outbox-17` for a message that the relay parked. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetterResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_dlq_body: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description `17`, or `outbox-17` for a message that the relay parked. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The body. */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_events_stream: {
        parameters: {
            query?: never;
            header?: {
                /** @description Id of the last received event. Browsers send it when they reconnect. */
                "last-event-id"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, until the stream ends. */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_streams`: Too many streams are open or `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_export_audit: {
        parameters: {
            query?: {
                /** @description `csv`: a header row, then a row per item; `ndjson`: a JSON object per line. */
                format?: "csv" | "ndjson";
                /** @description Maximum number of rows. A file with exactly this many may be incomplete. */
                limit?: number;
                /** @description The principal's exact name. */
                actor?: string | null;
                /** @description The action, such as `dlq.requeue`. */
                action?: string | null;
                /** @description `denied`: not allowed; `failed`: allowed, but failed. */
                outcome?: ("done" | "denied" | "failed") | null;
                /** @description The changed object. */
                target?: string | null;
                /** @description Created at this time or later. */
                created_after?: string | null;
                /** @description Created before this time. */
                created_before?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. If reading fails, the connection is aborted. */
            200: {
                headers: {
                    /** @description The `limit`. A file with that many rows may be incomplete. */
                    "Outbox-Export-Limit"?: number;
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    /** @description The file name. */
                    "content-disposition"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_export_dlq: {
        parameters: {
            query?: {
                /** @description `csv`: a header row, then a row per item; `ndjson`: a JSON object per line. */
                format?: "csv" | "ndjson";
                /** @description Maximum number of rows. A file with exactly this many may be incomplete. */
                limit?: number;
                /** @description What dead-lettered it: a `relay` that cannot send it, a failed `worker`, or the `broker`. */
                source?: components["schemas"]["Source"] | null;
                /** @description The queue where it failed. */
                queue?: string | string[] | null;
                /** @description Its routing key, exactly. */
                routing_key?: string | string[] | null;
                /** @description The type of the exception, with its module. */
                exception_type?: string | string[] | null;
                /** @description The fingerprint of its group, see `outbox_dlq_groups`. */
                group_id?: string | null;
                /** @description Its status; `open`: neither requeued nor discarded. */
                status?: ("open" | "requeued" | "discarded" | "any") | ("open" | "requeued" | "discarded" | "any")[];
                /** @description An id of its chain: its own, or of a message that led to it. */
                tracking_id?: string | null;
                /** @description Its own id. */
                message_id?: string | null;
                /** @description It failed for good at that time or later. */
                failed_after?: string | null;
                /** @description It failed for good before that time. */
                failed_before?: string | null;
                /** @description So many attempts failed, or more. */
                min_failures?: number | null;
                /** @description Words of its error and masked body: words, "phrases", or, -not. */
                q?: string | null;
                /** @description By the time of death, the latest first or last. */
                sort?: "newest" | "oldest";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. If reading fails, the connection is aborted. */
            200: {
                headers: {
                    /** @description The `limit`. A file with that many rows may be incomplete. */
                    "Outbox-Export-Limit"?: number;
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    /** @description The file name. */
                    "content-disposition"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_export_messages: {
        parameters: {
            query?: {
                /** @description `csv`: a header row, then a row per item; `ndjson`: a JSON object per line. */
                format?: "csv" | "ndjson";
                /** @description Maximum number of rows. A file with exactly this many may be incomplete. */
                limit?: number;
                /** @description Its routing key; with `*` at the end, how it begins. */
                routing_key?: string | null;
                /** @description Its ordering key; those of one are listed in their order. */
                ordering_key?: string | null;
                /** @description Its own id. */
                message_id?: string | null;
                /** @description Its id, or that of one of its causes. */
                tracking_id?: string | null;
                /** @description The one queue that it is for. */
                target_queue?: string | null;
                /** @description Written then or later. */
                created_after?: string | null;
                /** @description Written before. */
                created_before?: string | null;
                /** @description Where it is. */
                state?: components["schemas"]["MessageState"] | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. If reading fails, the connection is aborted. */
            200: {
                headers: {
                    /** @description The `limit`. A file with that many rows may be incomplete. */
                    "Outbox-Export-Limit"?: number;
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    /** @description The file name. */
                    "content-disposition"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_export_operations: {
        parameters: {
            query?: {
                /** @description `csv`: a header row, then a row per item; `ndjson`: a JSON object per line. */
                format?: "csv" | "ndjson";
                /** @description Maximum number of rows. A file with exactly this many may be incomplete. */
                limit?: number;
                /** @description Only those that have not ended. */
                active?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. If reading fails, the connection is aborted. */
            200: {
                headers: {
                    /** @description The `limit`. A file with that many rows may be incomplete. */
                    "Outbox-Export-Limit"?: number;
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    /** @description The file name. */
                    "content-disposition"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_health_live: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Liveness"];
                };
            };
        };
    };
    outbox_health_ready: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description Service Unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
        };
    };
    outbox_health_verdict: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VerdictResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_messages_list: {
        parameters: {
            query?: {
                /** @description At most so many items. */
                limit?: number;
                /** @description `next` or `previous` of a page before; with its filter. */
                cursor?: string | null;
                /** @description Whether to count all, up to 10,000. */
                total?: boolean;
                /** @description Its routing key; with `*` at the end, how it begins. */
                routing_key?: string | null;
                /** @description Its ordering key; those of one are listed in their order. */
                ordering_key?: string | null;
                /** @description Its own id. */
                message_id?: string | null;
                /** @description Its id, or that of one of its causes. */
                tracking_id?: string | null;
                /** @description The one queue that it is for. */
                target_queue?: string | null;
                /** @description Written then or later. */
                created_after?: string | null;
                /** @description Written before. */
                created_before?: string | null;
                /** @description Where it is. */
                state?: components["schemas"]["MessageState"] | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessagePage"];
                };
            };
            /** @description `invalid_cursor`: Invalid cursor or `cursor_mismatch`: The cursor belongs to another filter or order */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_messages_publish: {
        parameters: {
            query?: never;
            header?: {
                /** @description Your name for this change: asked for again within a day, it is answered again and not done again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PublishRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishedMessage"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `invalid_edit`: The edited message is invalid or `header_locked`: The header is reserved or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_messages_cancel: {
        parameters: {
            query?: never;
            header?: {
                /** @description Your name for this change: asked for again within a day, it is answered again and not done again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CancelRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeResponse"] | components["schemas"]["ChangePlan"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_messages_reschedule: {
        parameters: {
            query?: never;
            header?: {
                /** @description Your name for this change: asked for again within a day, it is answered again and not done again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RescheduleRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeResponse"] | components["schemas"]["ChangePlan"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_messages_send_now: {
        parameters: {
            query?: never;
            header?: {
                /** @description Your name for this change: asked for again within a day, it is answered again and not done again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SendNowRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeResponse"] | components["schemas"]["ChangePlan"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_messages_show: {
        parameters: {
            query?: {
                /** @description Show what is masked. For operators, and written to the audit. */
                reveal?: boolean;
            };
            header?: never;
            path: {
                /** @description The number of its row; `outbox-17` means 17. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_messages_edit: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The number of its row. */
                id: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MessageEditRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `conflict`: The state does not allow this or `version_conflict`: It was changed in the meantime */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `invalid_edit`: The edited message is invalid or `header_locked`: The header is reserved */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_operations_list: {
        parameters: {
            query?: {
                /** @description At most so many items. */
                limit?: number;
                /** @description `next` or `previous` of a page before; with its filter. */
                cursor?: string | null;
                /** @description Whether to count all, up to 10,000. */
                total?: boolean;
                /** @description Only those that have not ended. */
                active?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationPage"];
                };
            };
            /** @description `invalid_cursor`: Invalid cursor or `cursor_mismatch`: The cursor belongs to another filter or order */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_operations_show: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The number of the operation. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_operations_cancel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The number of the operation. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_operations_items: {
        parameters: {
            query?: {
                /** @description At most so many items. */
                limit?: number;
                /** @description `next` or `previous` of a page before; with its filter. */
                cursor?: string | null;
                /** @description Whether to count all, up to 10,000. */
                total?: boolean;
                /** @description Only those of which this came. */
                outcome?: ("failed_again" | "refused" | "not_found" | "skipped" | "pending" | "requeued" | "discarded" | "restored" | "purged") | null;
            };
            header?: never;
            path: {
                /** @description The number of the operation. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationItemPage"];
                };
            };
            /** @description `invalid_cursor`: Invalid cursor or `cursor_mismatch`: The cursor belongs to another filter or order */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_operations_pause: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The number of the operation. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_operations_resume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The number of the operation. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_pause: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PauseRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PauseResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_pauses_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pauses"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_queues_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueList"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_queues_show: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueDetail"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_requeue: {
        parameters: {
            query?: never;
            header?: {
                /** @description Your name for this change: asked for again within a day, it is answered again and not done again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RequeueRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RepairResponse"] | components["schemas"]["DryRunResponse"];
                };
            };
            /** @description An operation was made of it, whose letters are fixed now, and which goes on in batches. */
            202: {
                headers: {
                    /** @description Where the operation is. */
                    location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `count_drifted`: The selected dead letters have changed since the dry run or `version_conflict`: It was changed in the meantime or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `invalid_edit`: The edited message is invalid or `header_locked`: The header is reserved or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable or `broker_unavailable`: The broker is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_restore: {
        parameters: {
            query?: never;
            header?: {
                /** @description Your name for this change: asked for again within a day, it is answered again and not done again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RestoreRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RepairResponse"] | components["schemas"]["DryRunResponse"];
                };
            };
            /** @description An operation was made of it, whose letters are fixed now, and which goes on in batches. */
            202: {
                headers: {
                    /** @description Where the operation is. */
                    location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `count_drifted`: The selected dead letters have changed since the dry run or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_resume: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResumeRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Resumed"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_search: {
        parameters: {
            query: {
                /** @description What is looked for. */
                q: string;
                /** @description At most so many of a kind. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_session_show: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_session_begin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Login"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_session_end: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_session_methods: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginMethods"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_stats_show: {
        parameters: {
            query?: {
                /** @description A time in RFC 3339, or relative to now: `-15m`, `-1h`, `-7d`. */
                from?: string;
                /** @description A time in RFC 3339, relative to now as in `from`, or `now`. */
                to?: string;
                /** @description `auto`, or a duration: `60s`, `5m`, `1h`, `1d`. */
                step?: string;
                /** @description One series each for the 20 most active, and one for the others. */
                group_by?: "none" | "queue" | "routing_key";
                /** @description Only what workers report of this queue. Not with `group_by`. */
                queue?: string | null;
                /** @description Include the latency histograms. */
                buckets?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatsResponse"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    outbox_topology_show: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description The release that answered, for authenticated clients only. */
                    "Outbox-Version"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Topology"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
}
