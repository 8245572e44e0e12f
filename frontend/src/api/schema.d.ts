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
         * @description Lists the configured tokens, without their hashes, and the open sessions of all processes.
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
         * @description Ends a session in every process. The user can log in again; to prevent that, use `DELETE /access/tokens/{id}`.
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
         * @description Revokes a token permanently and ends its sessions, in every process within seconds.
         *
         *     The token's entry stays in the configuration until you remove it there. To grant access again, configure a new token.
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
         * @description Lists alerts, newest first, with their notifications, and the settings of alerts.
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
         * @description Sends a test message once to every webhook, and returns the results. No alert is raised.
         */
        post: operations["outbox_alerts_test"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/asyncapi": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show AsyncAPI Document
         * @description Shows what is published and consumed as an AsyncAPI document.
         *
         *     It contains the consumers that running workers report, with their schemas, and the events that were given to the `Admin`. Of
         *     several workers of one queue, the one that started last is shown.
         */
        get: operations["outbox_asyncapi_show"];
        put?: never;
        post?: never;
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
         * @description Dead-letters messages in a queue without another attempt. Only for queues in PostgreSQL.
         *
         *     They keep their earlier failures, and belong to the group of the latest one.
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
         * @description Moves messages to the front or the back of their queue. Only for queues in PostgreSQL.
         *
         *     Moving a message that waits for its next attempt to the front makes it due now. Messages that are not due cannot be moved to
         *     the back. Moved messages are sorted by id. Messages with an ordering key are refused.
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
         * @description Makes messages in a queue that wait for their next attempt due now. Only for queues in PostgreSQL.
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
         * @description Discards dead letters. They are kept and can be restored, but do not count as open.
         *
         *     With `purge`, discarded ones are permanently deleted instead. This requires the `admin` role, a reason, and the token of a
         *     dry run.
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
         * @description Lists dead letters, including messages that the relay parked. By default, only open ones.
         *
         *     Pages do not shift while messages fail and are resolved: each page begins after the last item of the previous one. A message
         *     that fails again moves to the position of its latest failure. `total` and `facets` are counted on request. Facets may be up
         *     to a minute old; see `as_of`.
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
         * @description Lists groups of the dead letters that match the filter, by the fingerprint of their error, by queue or by routing key.
         *
         *     The largest group comes first. Groups are counted at most every five seconds. While they are being counted, the response has
         *     the previous counts, up to a minute old; see `as_of`. Marks and notes are current. A group is `reopened` if it failed again
         *     after it was marked as fixed, or if more of its dead letters are open than `muted_above`.
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
         * @description Sets or removes the note of a group. All viewers see it. The group need not have dead letters at this time.
         *
         *     With a `version`, a note that another operator has changed since is not replaced: the response is `version_conflict`, with
         *     the `note` that the group has now, and its `version`.
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
         * @description Lets maintenance requeue open dead letters of a group automatically: each hour, the `per_hour` oldest ones.
         *
         *     Each time, one message is requeued first as a canary; the others follow after it was handled. The policy stops when a
         *     message fails again, or when its operation is cancelled. Set it again to continue. `per_hour: null` removes the policy.
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
         * @description Marks a group as fixed or muted, or removes its mark. The group need not have dead letters at this time.
         *
         *     Later failures reopen the group automatically. The verdict ignores muted groups.
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
         * @description Shows a group by fingerprint, with dead letters of every status. `versions` are those of its latest 10,000 dead letters.
         *
         *     To list its dead letters, use `outbox_dlq_list` with `group_id`. `sample_id` is one of them, with a traceback.
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
         * @description Shows one dead letter: error, earlier failures, body, headers, payloads before edits, and the outcome of each requeue.
         *
         *     Values are masked. Operators can reveal them with `reveal=true`, which is audited. JSON is returned as it was written, which
         *     preserves large numbers. At most 262,144 bytes of a body are returned. Larger JSON is only returned with `reveal=true`,
         *     because part of a document cannot be masked. `outbox_dlq_body` returns the whole body.
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
         * @description Downloads the body, unmasked, and decrypted if this service has the key. The download is audited.
         *
         *     A body that is stored elsewhere is fetched; if that is not possible, the response is `conflict`.
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
         *     first event is `reset`: reload everything that you show. After 15 seconds without an event, a `heartbeat` is sent: if it is
         *     missing, the connection is dead. The stream ends after five minutes, or earlier when the session ends, the client falls
         *     behind, or the server stops: reconnect.
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
         * @description Shows whether the installation is healthy, and if not, what is wrong, since when, and what to do.
         *
         *     The verdict covers the age and depth of the outbox and of queues; queues without a consumer; pauses; held, stalled and
         *     parked messages; the topology; missing, late and lost components; and dead letters. The dashboard, `outbox status`,
         *     `outbox doctor` and the gauges `outbox_health_…` show the same verdict, which is computed at most every two seconds. A
         *     database that does not respond is a finding.
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
         *     Pending, scheduled and retrying messages are sorted by due time, held ones by routing key, blocked ones and those of one
         *     `ordering_key` in sending order. Parked and sent messages, and lists without `state`, are sorted newest first. A filter
         *     whose search takes longer than two seconds gets `filter_too_broad`. `state` and `ordering_key` have an index, and
         *     `routing_key` has one for held messages.
         */
        get: operations["outbox_messages_list"];
        put?: never;
        /**
         * Publish Message
         * @description Publishes a message, in one transaction with its audit entry.
         *
         *     The body is checked against the schemas of the consumers whose queues the routing key matches. `force` skips this check.
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
         * @description Removes messages from the outbox before they are sent.
         *
         *     Nothing is lost: each message becomes a discarded dead letter, which can be restored and requeued. Later messages of the
         *     same ordering key are no longer blocked by it. Messages that a relay is sending are skipped.
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
         * @description Changes the due time of messages, their priority, or both.
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
         * @description Makes scheduled, retrying, held, stalled and blocked messages due now.
         *
         *     A relay tries a held message again, and holds it again if there is still no queue. A message with an ordering key still
         *     waits for the earlier messages of that key.
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
         * @description Shows one message in the outbox, why it waits, and what happens next. Values are masked unless `reveal=true`.
         */
        get: operations["outbox_messages_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Edit Message
         * @description Changes the routing key, body or headers of a message before it is sent.
         *
         *     A new body is checked against the schemas of its consumers. A held or stalled message is tried again. `version` is the one
         *     that `GET /messages/{id}` returned; if the message has changed since, the response is `version_conflict`.
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
         * @description Lists operations with their progress, newest first.
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
         * @description Shows one operation: the request with its author and reason, the progress, and the results of requeued messages.
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
         * @description Cancels an operation. Finished items stay finished; the others do not change.
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
         * @description Lists the items of an operation with their outcomes, failed items first.
         *
         *     While the operation is active, outcomes change. A page has the outcomes at the time of its request.
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
         * @description Pauses an operation. No further batch starts until it is resumed.
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
         * @description Sends dead letters again through the outbox. Messages keep their ids, and go to the queue where they failed.
         *
         *     Up to 100 ids are requeued immediately, with an outcome for each. More ids, a filter, a group, a rate, a canary or a start
         *     time create an operation (202): its items are fixed now, and maintenance processes them. With `dry_run`, nothing changes:
         *     the response has what would change, and the `confirm_token` that filters and groups require.
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
         * @description Searches messages, deliveries, dead letters, chains, queues, routing keys and components for a text.
         *
         *     Matches are: ids of messages, deliveries, dead letters and chains; parts of the names of queues, handlers, routing keys and
         *     components; words of dead letters, as in `GET /dlq?q=`; and parts of the errors of the newest 5,000 dead letters.
         *
         *     Values in bodies, such as an order number, are found in dead letters, and in the newest 5,000 messages of the outbox and of
         *     queues in PostgreSQL, if the body is at most 16 KiB. Masked values are not found. Values at the paths of
         *     `OUTBOX_INDEX_KEYS`, or of a consumer's option `index_keys`, are found in the whole history. `incomplete` names the kinds
         *     that took too long.
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
         * @description Shows the available login methods: token, provider, or both. This endpoint is public.
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
         * @description Configured tokens and open sessions. Both lists are empty if the host application authenticates users itself.
         */
        AccessResponse: {
            /**
             * Sessions
             * @description Open sessions, newest first, up to 1,000.
             */
            sessions: components["schemas"]["SessionResponse"][];
            /**
             * Tokens
             * @description Tokens as configured in the process that responds.
             */
            tokens: components["schemas"]["TokenResponse"][];
        };
        /**
         * Action
         * @description Action that changes a dead letter.
         * @enum {string}
         */
        Action: "requeue" | "discard" | "restore" | "purge";
        /**
         * AlertDelivery
         * @description A notification about an alert to one webhook.
         */
        AlertDelivery: {
            /** Attempts */
            attempts: number;
            /**
             * Due At
             * @description When the next attempt is due. Null if it was sent, or is not retried.
             */
            due_at: string | null;
            /**
             * Event
             * @enum {string}
             */
            event: "fired" | "resolved";
            /**
             * Last Error
             * @description Why the last attempt failed, or why the notification was not sent.
             */
            last_error: string | null;
            /** Sent At */
            sent_at: string | null;
            /**
             * Target
             * @description Host of the webhook, and a hash of its URL.
             */
            target: string;
        };
        /**
         * AlertPage
         * @description One page of the alerts, newest first.
         */
        AlertPage: {
            /** Items */
            items: components["schemas"]["AlertResponse"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page. Null on the last page.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page. Null on the first page.
             */
            previous: string | null;
            /** @description Null if alerts are not configured; then none are raised. */
            settings: components["schemas"]["AlertSettings"] | null;
            /** @description Only with `total=true`. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * AlertResponse
         * @description A problem, or an event.
         */
        AlertResponse: {
            /**
             * Code
             * @description Code of the verdict's finding, or `group_new`, `group_reopened` or `operation_ended`.
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
             * @description Page of the dashboard. Empty if the dashboard's URL is not configured.
             */
            link: string;
            /**
             * Resolved At
             * @description Null while the condition holds.
             */
            resolved_at: string | null;
            /**
             * Severity
             * @enum {string}
             */
            severity: "info" | "warning" | "error";
            /**
             * Started At
             * @description Since when the condition holds. Null if unknown.
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
         * @description Settings of alerts in the process that responds.
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
         * @description Results of the test for all webhooks.
         */
        AlertTest: {
            /** Items */
            items: components["schemas"]["TestedWebhook"][];
        };
        /**
         * AsyncApiDocument
         * @description An AsyncAPI 3.1 document.
         */
        AsyncApiDocument: {
            /** Asyncapi */
            asyncapi: string;
            /**
             * Channels
             * @description One for each routing key and binding key.
             */
            channels: {
                [key: string]: unknown;
            };
            /**
             * Components
             * @description The JSON schemas of the bodies.
             */
            components: {
                [key: string]: unknown;
            };
            /** Info */
            info: {
                [key: string]: string;
            };
            /**
             * Operations
             * @description `send` for each published event, `receive` for each queue of a worker.
             */
            operations: {
                [key: string]: unknown;
            };
        };
        /**
         * AttemptOutcome
         * @description Outcome of an attempt. `DUPLICATE`: the message had been handled before.
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
             * @description Pass it as `cursor` to get the next page. Null on the last page.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page. Null on the first page.
             */
            previous: string | null;
            /** @description Only with `total=true`. */
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
             * Destinations
             * @description The share of each destination; empty if the outbox has only the default one.
             */
            destinations: components["schemas"]["DestinationCounts"][];
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
             * @description Name of the relay. Empty for a pause of all relays.
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
         * BodyAccess
         * @description How a body is kept that is encrypted, or in the store of large bodies, and whether this service can read it.
         */
        BodyAccess: {
            /**
             * Can Reveal
             * @description Whether this service has the key and the store, to reveal the body and to edit it.
             */
            can_reveal: boolean;
            /**
             * Error
             * @description With `reveal=true`: why the body could not be read.
             */
            error: string | null;
            /**
             * Key Id
             * @description Id of the key that it is encrypted with. Null: it is not encrypted.
             */
            key_id: string | null;
            /**
             * Stored Size
             * @description Size of the body in the store, in bytes. Null: it is in the message.
             */
            stored_size: number | null;
        };
        /**
         * BrokerKind
         * @description The broker that holds the queues: with Kafka, Redis or SQS PostgreSQL. `other`: an object of the host without them.
         * @enum {string}
         */
        BrokerKind: "postgresql" | "rabbitmq" | "other";
        /**
         * CanaryRequest
         * @description Sends the first `count` dead letters first; the others follow after all of these were handled.
         *
         *     The operation stops at the first failed attempt, unless `stop_on_failure_ratio` tolerates it, or if results are missing
         *     after `wait_seconds`.
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
         * @description Number of messages sent first, and the maximum time to wait for their results.
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
         * @description Removes messages from the outbox before they are sent. They become discarded dead letters, and can be restored.
         */
        CancelRequest: {
            /**
             * Confirm Token
             * @description The token that the dry run returned.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Return what would change, without changing it.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description Maximum number of messages, in list order.
             * @default 10000
             */
            max_items: number;
            /**
             * Reason
             * @description Reason for the audit log.
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
            external: components["schemas"]["ExternalLinks"];
            /**
             * Handling Seconds
             * @description How long the handler ran.
             */
            handling_seconds: number | null;
            /** @description `duplicate`: the message had been handled before. */
            outcome: components["schemas"]["AttemptOutcome"];
            /**
             * Trace Id
             * @description Trace of the attempt: 32 hexadecimal digits. It may be another one than that of its message. Null if the trace is not sampled, or the history of the attempt is missing.
             */
            trace_id: string | null;
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
            external: components["schemas"]["ExternalLinks"];
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
             * Trace Id
             * @description Trace of the message, from its header `traceparent`: 32 hexadecimal digits. Null if none is sampled.
             */
            trace_id: string | null;
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
             * @description Pass it as `cursor` to get the next page. Null on the last page.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page. Null on the first page.
             */
            previous: string | null;
            /** @description Only with `total=true`. */
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
         * @description Recorded state of a message, or of its delivery to one queue.
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
         * @description Result of a dry run: what the change would do now, and the token that confirms it.
         */
        ChangePlan: {
            /**
             * Action
             * @enum {string}
             */
            action: "cancel" | "send_now" | "reschedule" | "retry" | "move" | "dead_letter";
            /**
             * Confirm Token
             * @description Pass it with the same request to apply the change. Valid once, for 15 minutes.
             */
            confirm_token: string;
            /**
             * Count
             * @description Number of messages that would change. A request with the token changes at most as many.
             */
            count: number;
            /**
             * Sample
             * @description Ids of the first of these messages.
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
         * @description The outcome for one message.
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
             * @description Why the message was not changed. Empty if it was.
             */
            reason: string;
        };
        /**
         * Code
         * @description Stable code of a problem. Scripts may rely on it.
         * @enum {string}
         */
        Code: "invalid_cursor" | "cursor_mismatch" | "unauthenticated" | "forbidden" | "cross_site" | "read_only" | "not_found" | "method_not_allowed" | "conflict" | "not_supported" | "count_drifted" | "version_conflict" | "request_running" | "body_too_slow" | "body_too_large" | "invalid_request" | "filter_too_broad" | "invalid_edit" | "header_locked" | "key_reused" | "confirmation_required" | "too_many_logins" | "too_many_requests" | "too_many_streams" | "internal" | "schema_outdated" | "database_unavailable" | "broker_unavailable" | "body_store_unavailable" | "keys_unavailable";
        /**
         * ComponentActivity
         * @description The activity that a component reports.
         */
        ComponentActivity: {
            /**
             * Destination
             * @description Relays only: the destination that it serves; missing: an older release does not report it.
             */
            destination?: string | null;
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
             * @description Relays only: unsent messages for its destination.
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
         * @description Kind of a component that reports.
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
         * @description Status of a component by its heartbeats. `LATE`: two are missing; `LOST`: six are missing.
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
            /** @description Of a typed event: its versions. Missing for other consumers. */
            event?: components["schemas"]["EventVersions"] | null;
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
         * @description A body, or the part of it that can be shown.
         */
        Content: {
            /** @description Null: the body is in the message, and not encrypted. */
            access: components["schemas"]["BodyAccess"] | null;
            /** Content */
            content: string | null;
            /** Content Type */
            content_type: string | null;
            /**
             * Encoding
             * @description Encoding of `content`: JSON as it was written, other text, or bytes in base64. Null if nothing is shown.
             */
            encoding: ("json" | "text" | "base64") | null;
            /**
             * Masked
             * @description Whether values are hidden. `reveal=true` shows them.
             */
            masked: boolean;
            /**
             * Size
             * @description Size of the whole body, in bytes.
             */
            size: number;
            /**
             * Truncated
             * @description Whether the body is too large: `content` is then only its beginning, or null.
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
         * @description Conditions that a dead letter must match, all of them. Without `status`, only open ones match; `any` matches all.
         *
         *     `queue`, `routing_key`, `exception_type` and `status` accept several values, one of which must match.
         */
        DeadLetterFilters: {
            /**
             * Destination
             * @description Destination whose relay could not send the message.
             */
            destination?: string | null;
            /**
             * Exception Type
             * @description Type of the exception, with its module.
             */
            exception_type?: string | string[] | null;
            /**
             * Failed After
             * @description Dead-lettered at this time or later.
             */
            failed_after?: string | null;
            /**
             * Failed Before
             * @description Dead-lettered before this time.
             */
            failed_before?: string | null;
            /**
             * Group Id
             * @description Fingerprint of the group, as `outbox_dlq_groups` returns it.
             */
            group_id?: string | null;
            /**
             * Message Id
             * @description Id of the message itself.
             */
            message_id?: string | null;
            /**
             * Min Failures
             * @description Minimum number of failed attempts.
             */
            min_failures?: number | null;
            /**
             * Q
             * @description Search in errors and bodies: words, "phrases", or, -word.
             */
            q?: string | null;
            /**
             * Queue
             * @description Queue where the message failed.
             */
            queue?: string | string[] | null;
            /**
             * Routing Key
             * @description Exact routing key.
             */
            routing_key?: string | string[] | null;
            /** @description What dead-lettered the message: a `relay` that could not send it, a `worker` whose handler failed, or the `broker`. */
            source?: components["schemas"]["Source"] | null;
            /**
             * Status
             * @description Status. `open`: neither requeued nor discarded.
             * @default open
             */
            status: ("open" | "requeued" | "discarded" | "any") | ("open" | "requeued" | "discarded" | "any")[];
            /**
             * Tracking Id
             * @description Id of the message, or of one of its causes.
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
             * @description Number of failures since that requeue, or of all if none was requeued.
             */
            count_since_requeue: number;
            /**
             * First Seen At
             * Format: date-time
             */
            first_seen_at: string;
            /**
             * Handlers
             * @description Qualified names of the handlers of this queue.
             */
            handlers: string[];
            /**
             * Hourly Counts
             * @description Number of failures in each of the last 24 hours, the current hour last.
             */
            hourly_counts: number[];
            /**
             * Id
             * @description Value for the filter `group_id`, `queue` or `routing_key`, depending on `by`.
             */
            id: string;
            /**
             * Last Requeued At
             * @description When a dead letter of the group was last requeued.
             */
            last_requeued_at: string | null;
            /**
             * Last Seen At
             * Format: date-time
             */
            last_seen_at: string;
            /** @description Null if the group has no mark. */
            mark: components["schemas"]["GroupMarkResponse"] | null;
            note: components["schemas"]["Note"] | null;
            /** Open Count */
            open_count: number;
            /**
             * Queue
             * @description Queue of a group by fingerprint. Empty for parked messages without a target queue.
             */
            queue: string | null;
            /** @description Null if the group has no policy. */
            requeue_policy: components["schemas"]["RequeuePolicyResponse"] | null;
            /**
             * Sample Id
             * @description Id of the dead letter recorded last.
             */
            sample_id: string;
            /** @description Status of a group by fingerprint. `reopened`: it was marked as fixed but failed again, or it was muted and too many of its dead letters are open. */
            status: components["schemas"]["GroupStatus"] | null;
            /** Title */
            title: string;
            /**
             * Versions
             * @description Service releases in which the latest ones failed.
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
             * @description When the groups were counted. Marks and notes are current.
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
         * @description Links to related resources. Fields with a default may be missing.
         */
        DeadLetterLinks: {
            /** Body */
            body: string;
            /**
             * Chain
             * @description Chain of the message, if it has an id.
             */
            chain?: string | null;
            /** Group */
            group: string;
            /**
             * Operation
             * @description Operation in which the dead letter is pending.
             */
            operation?: string | null;
            /** Self */
            self: string;
        };
        /**
         * DeadLetterOperation
         * @description An operation that includes the dead letter.
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
             * @description Why the action was not done, or the error of the new attempt.
             */
            reason: string | null;
            /** Settled At */
            settled_at: string | null;
        };
        /**
         * DeadLetterPage
         * @description One page of the dead letters.
         */
        DeadLetterPage: {
            /**
             * Degraded
             * @description Systems that did not respond, whose data is missing.
             */
            degraded: "broker"[];
            /** @description Only with `facets=true`. */
            facets: components["schemas"]["Facets"] | null;
            /** Items */
            items: components["schemas"]["DeadLetterSummary"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page. Null on the last page.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page. Null on the first page.
             */
            previous: string | null;
            /** @description Only with `total=true`. */
            total: components["schemas"]["Total"] | null;
            /** @description Dead letters still at RabbitMQ. Null without it, or without data. */
            unarchived: components["schemas"]["Unarchived"] | null;
        };
        /**
         * DeadLetterRequest
         * @description Dead-letters deliveries without another attempt.
         */
        DeadLetterRequest: {
            /**
             * Confirm Token
             * @description The token that the dry run returned.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Return what would change, without changing it.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description Maximum number of messages, in list order.
             * @default 10000
             */
            max_items: number;
            /**
             * Reason
             * @description Reason for the audit log.
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
             * @description How often it was dead-lettered. Above 1 if it failed again after a requeue.
             */
            dead_letter_count: number;
            /**
             * Destination
             * @description Destination whose relay could not send it, such as `default`. Null if no relay dead-lettered it.
             */
            destination: string | null;
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
             * @description Total number of failed attempts.
             */
            failure_count: number;
            /**
             * Failures
             * @description All failed attempts, oldest first.
             */
            failures: components["schemas"]["FailureResponse"][];
            /**
             * First Failed At
             * Format: date-time
             */
            first_failed_at: string;
            /**
             * Group Id
             * @description Fingerprint of the error. Dead letters with similar failures share it.
             */
            group_id: string;
            /**
             * Header Types
             * @description AMQP types by JSON pointer.
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
             * @description Hybrid logical clock: a number that orders the message among all events.
             */
            hlc: string | null;
            /**
             * Id
             * @description `17`, or `outbox-17` for a message that the relay parked.
             */
            id: string;
            /**
             * Links
             * @description Links relative to the parent of `/dlq`.
             */
            links: components["schemas"]["DeadLetterLinks"];
            /** Message Id */
            message_id: string | null;
            /**
             * Operation Id
             * @description Operation in which the dead letter is pending.
             */
            operation_id: string | null;
            /**
             * Operations
             * @description Operations that included the dead letter, latest first.
             */
            operations: components["schemas"]["DeadLetterOperation"][];
            /** Ordering Key */
            ordering_key: string | null;
            /**
             * Preview
             * @description Beginning of the body, masked, or its size.
             */
            preview: string;
            /** Properties */
            properties: {
                [key: string]: unknown;
            };
            /**
             * Queue
             * @description Queue where the message failed. Empty if the relay parked it without a target queue.
             */
            queue: string;
            /**
             * Reason
             * @description Why it was dead-lettered: `exhausted`, `rejected`, `undecodable`, `expired`, `refused`, …
             */
            reason: string;
            /**
             * Requeue Count
             * @description How often the message was requeued, including the requeue that `status` may show.
             */
            requeue_count: number;
            /**
             * Requeues
             * @description Requeues in the history, oldest first.
             */
            requeues: components["schemas"]["RequeueResponse"][];
            /**
             * Resolution Reason
             * @description Reason that the operator gave for the resolution.
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
             * @description Id of the first message of the chain.
             */
            root_id: string | null;
            /** Routing Key */
            routing_key: string;
            /**
             * Service Version
             * @description Service release in which the last attempt failed. Null if unknown.
             */
            service_version: string | null;
            /**
             * Size
             * @description Size of the body, in bytes.
             */
            size: number;
            source: components["schemas"]["Source"];
            status: components["schemas"]["DeadLetterStatus"];
            /**
             * Trace Id
             * @description Trace of the message, from its header `traceparent`: 32 hexadecimal digits. Null if none is sampled.
             */
            trace_id: string | null;
            /**
             * Tracking Ids
             * @description Ids of the messages that led to this one, from the first to its own.
             */
            tracking_ids: string[];
            /**
             * Version
             * @description Version of the payload. An edit must name it, to detect concurrent edits.
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
         * @description A dead letter in the list, without its payload.
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
             * @description How often it was dead-lettered. Above 1 if it failed again after a requeue.
             */
            dead_letter_count: number;
            /**
             * Destination
             * @description Destination whose relay could not send it, such as `default`. Null if no relay dead-lettered it.
             */
            destination: string | null;
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
             * @description Total number of failed attempts.
             */
            failure_count: number;
            /**
             * First Failed At
             * Format: date-time
             */
            first_failed_at: string;
            /**
             * Group Id
             * @description Fingerprint of the error. Dead letters with similar failures share it.
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
             * @description Beginning of the body, masked, or its size.
             */
            preview: string;
            /**
             * Queue
             * @description Queue where the message failed. Empty if the relay parked it without a target queue.
             */
            queue: string;
            /**
             * Reason
             * @description Why it was dead-lettered: `exhausted`, `rejected`, `undecodable`, `expired`, `refused`, …
             */
            reason: string;
            /**
             * Requeue Count
             * @description How often the message was requeued, including the requeue that `status` may show.
             */
            requeue_count: number;
            /**
             * Resolution Reason
             * @description Reason that the operator gave for the resolution.
             */
            resolution_reason: string | null;
            /** Resolved At */
            resolved_at: string | null;
            /** Resolved By */
            resolved_by: string | null;
            /**
             * Root Id
             * @description Id of the first message of the chain.
             */
            root_id: string | null;
            /** Routing Key */
            routing_key: string;
            /**
             * Service Version
             * @description Service release in which the last attempt failed. Null if unknown.
             */
            service_version: string | null;
            /**
             * Size
             * @description Size of the body, in bytes.
             */
            size: number;
            source: components["schemas"]["Source"];
            status: components["schemas"]["DeadLetterStatus"];
            /**
             * Version
             * @description Version of the payload. An edit must name it, to detect concurrent edits.
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
            /** @description Null: the body is in the message, and not encrypted. */
            body_access: components["schemas"]["BodyAccess"] | null;
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
            /**
             * Trace Id
             * @description Trace of the message, from its header `traceparent`: 32 hexadecimal digits. Null if none is sampled.
             */
            trace_id: string | null;
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
             * @description Pass it as `cursor` to get the next page. Null on the last page.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page. Null on the first page.
             */
            previous: string | null;
            /** @description Only with `total=true`. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * DeliverySelector
         * @description Which messages in queues to change: either `ids` or `filter`.
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
         * DestinationCounts
         * @description What waits for one destination.
         */
        DestinationCounts: {
            /**
             * Destination
             * @description `default`, or the name that `Route` or `publish` give it.
             */
            destination: string;
            /**
             * Oldest Pending Age Seconds
             * @description How long the oldest due message has been due.
             */
            oldest_pending_age_seconds: number | null;
            /**
             * Relay Count
             * @description Relays that serve it. Null: the admin's role may not see them.
             */
            relay_count: number | null;
            /**
             * Sends To
             * @description Where its relays send. Null: unknown, or no relay runs.
             */
            sends_to: string | null;
            /** @description Messages that are neither sent nor parked. */
            unsent: components["schemas"]["Counted"];
        };
        /**
         * DiscardRequest
         * @description Discards dead letters. With `purge`, permanently deletes discarded ones instead.
         */
        DiscardRequest: {
            /**
             * Confirm Token
             * @description The token that the dry run returned.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Return what would change, without changing it.
             * @default false
             */
            dry_run: boolean;
            /**
             * Force
             * @description With `purge`, also delete dead letters that were not discarded.
             * @default false
             */
            force: boolean;
            /**
             * Max Items
             * @description Maximum number, the oldest first.
             */
            max_items?: number | null;
            /**
             * Purge
             * @description Delete discarded ones for good. Requires the admin role and a reason.
             * @default false
             */
            purge: boolean;
            /**
             * Reason
             * @description Reason for the audit log.
             */
            reason?: string | null;
            selector: components["schemas"]["Selector"];
        };
        /**
         * DryRunResponse
         * @description Result of a dry run: what the request would do now, and the token that confirms it.
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
             * @description Send it with the same request to apply it. Valid once.
             */
            confirm_token: string;
            /**
             * Count
             * @description Number of matching dead letters.
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
             * @description The first matching dead letters.
             */
            sample: components["schemas"]["SampledItem"][];
            /**
             * Warnings
             * @description Risks to consider before you confirm.
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
         * @description A new body, new headers, or both, for one dead letter.
         *
         *     `body` is a JSON value; with the encoding `text` or `base64`, a string with the text or bytes. `headers` replace all
         *     existing headers; `{}` removes them. A field that is missing keeps its current value.
         */
        EditRequest: {
            /**
             * Body
             * @description New body. If missing, the body does not change.
             */
            body?: unknown;
            /**
             * Encoding
             * @description Encoding of `body`.
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
             * @description The `version` that was read, to detect concurrent edits.
             */
            version: number;
        };
        /**
         * EditionResponse
         * @description The payload before an edit.
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
         * @description An error, masked. Every error in a response has this shape.
         */
        Error: {
            /**
             * Message
             * @description Message of the exception, shortened in lists.
             */
            message: string;
            /**
             * Traceback
             * @description Null if the response omits it.
             */
            traceback: string | null;
            /**
             * Type
             * @description Class of the exception, with its module. Empty if there was no exception, or it is unknown.
             */
            type: string;
        };
        /**
         * EventVersions
         * @description The versions of a typed event that a consumer accepts.
         */
        EventVersions: {
            /**
             * Default Version
             * @description The version of a message without the header `event-version`.
             * @default 1
             */
            default_version: number;
            /** Oldest */
            oldest: number;
            /** Version */
            version: number;
        };
        /**
         * ExternalLinks
         * @description Links to the logs and the trace of a message or an attempt. Null if not configured, or if a value of it is missing.
         */
        ExternalLinks: {
            /** Log Url */
            log_url: string | null;
            /** Trace Url */
            trace_url: string | null;
        };
        /**
         * Facet
         * @description Number of dead letters with one value of a field.
         */
        Facet: {
            /** Count */
            count: number;
            /** Value */
            value: string;
        };
        /**
         * Facets
         * @description Counts of matching dead letters by value, for the 20 most frequent values of each field.
         *
         *     The counts of a field ignore the filter on that field, so a client can offer other values.
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
             * @description `gte`: only the latest 50,000 are counted.
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
         * @description A failed attempt.
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
         * @description The new mark of a group by fingerprint.
         */
        GroupMarkRequest: {
            /**
             * Fixed In
             * @description Only with `fixed`: the release that contains the fix. Failures in releases that failed before the mark do not reopen the group.
             */
            fixed_in?: string | null;
            /**
             * Id
             * @description Id, as `outbox_dlq_groups` returns it.
             */
            id: string;
            /**
             * Muted Above
             * @description Required with `muted`: the group reopens when more than this number of its dead letters are open.
             */
            muted_above?: number | null;
            /**
             * Status
             * @description New status. `open` removes the mark.
             * @enum {string}
             */
            status: "open" | "fixed" | "muted";
        };
        /**
         * GroupMarkResponse
         * @description An operator's mark of a group. Fields that do not apply are null.
         */
        GroupMarkResponse: {
            /**
             * Count Since
             * @description Number of failures after the group was marked as fixed, counted up to 1,000.
             */
            count_since: number;
            /**
             * Failed Since At
             * @description When the first of these failures occurred.
             */
            failed_since_at: string | null;
            /**
             * Fixed In
             * @description Release that contains the fix.
             */
            fixed_in: string | null;
            /**
             * Marked As
             * @description `open`: the group is not marked.
             * @enum {string}
             */
            marked_as: "open" | "fixed" | "muted";
            /** Marked At */
            marked_at: string | null;
            /** Marked By */
            marked_by: string | null;
            /**
             * Muted Above
             * @description The group reopens when more than this number of its dead letters are open.
             */
            muted_above: number | null;
        };
        /**
         * GroupNoteRequest
         * @description The new note of a group, or its removal.
         */
        GroupNoteRequest: {
            /**
             * By
             * @enum {string}
             */
            by: "fingerprint" | "queue" | "routing_key";
            /**
             * Id
             * @description Id, as `outbox_dlq_groups` returns it.
             */
            id: string;
            /**
             * Note
             * @description New note. Null or blank text removes the note.
             */
            note: string | null;
            /**
             * Version
             * @description Version of the note that this one replaces. 0: there is none. Null: replace any.
             */
            version?: number | null;
        };
        /**
         * GroupNoteResponse
         * @description The current note of a group.
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
         * @description Status of a group of failures with a common fingerprint.
         *
         *     An operator marks a group as `FIXED` or `MUTED`. `REOPENED`: it was marked, but failed again, or more often than allowed.
         * @enum {string}
         */
        GroupStatus: "open" | "fixed" | "muted" | "reopened";
        /**
         * GroupVersionResponse
         * @description A release of the service in which messages of a group failed.
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
         * @description Configured thresholds of findings.
         */
        HealthThresholdsResponse: {
            /**
             * Dead Letter Window Seconds
             * @description How long a dead letter counts as new.
             */
            dead_letter_window_seconds: number;
            /**
             * Late After Seconds
             * @description Age of a waiting message from which it is a warning.
             */
            late_after_seconds: number;
            /**
             * Lost For Seconds
             * @description How long a lost component that was not replaced is a finding.
             */
            lost_for_seconds: number;
            /**
             * Overdue After Seconds
             * @description Age of a waiting message from which it is an error.
             */
            overdue_after_seconds: number;
            /**
             * Queue Depth
             * @description Number of messages in a queue above which it is a warning.
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
         * @description The outcome for one dead letter.
         */
        ItemResponse: {
            /**
             * Done Already
             * @description Whether it was skipped because it already is as the action would leave it.
             */
            done_already: boolean;
            /** Id */
            id: string;
            /**
             * Outcome
             * @enum {string}
             */
            outcome: "failed_again" | "refused" | "not_found" | "skipped" | "pending" | "requeued" | "discarded" | "restored" | "purged";
            /**
             * Reason
             * @description Why the action was not done. Empty if it was.
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
         * @description Available login methods.
         */
        LoginMethods: {
            /**
             * Provider
             * @description Whether users can log in at a provider, with `GET /session/oidc` in a browser.
             */
            provider: boolean;
            /**
             * Token
             * @description Whether users can log in with a token, with `POST /session`.
             */
            token: boolean;
        };
        /**
         * Message
         * @description One message with all its details, and why it waits.
         */
        Message: {
            /**
             * Alive Relay Count
             * @description Number of relays whose heartbeat is on time. Null if unknown.
             */
            alive_relay_count: number | null;
            /**
             * Attempt Count
             * @description Number of attempts to send it that the broker refused.
             */
            attempt_count: number;
            blocked_by: components["schemas"]["EarlierMessage"] | null;
            /**
             * Blocking Pauses
             * @description Pauses of all relays or of one. The latter may not block it.
             */
            blocking_pauses: components["schemas"]["BlockingPause"][];
            /**
             * Body
             * @description The body as text, masked unless `reveal=true`. Null if it is not text.
             */
            body: string | null;
            /** @description Null: the body is in the message, and not encrypted. */
            body_access: components["schemas"]["BodyAccess"] | null;
            /**
             * Body Base64
             * @description With `reveal=true`, a body that is not text, in base64.
             */
            body_base64: string | null;
            /** Content Type */
            content_type: string | null;
            /**
             * Created At
             * @description Null if the stored time is out of range.
             */
            created_at: string | null;
            /** Dedup Key */
            dedup_key: string | null;
            /**
             * Deliveries
             * @description Outcome in each queue. Null if there is no history.
             */
            deliveries: components["schemas"]["MessageDelivery"][] | null;
            /**
             * Destination
             * @description Which relays send it: `default`, or a name that `Route` or `publish` gave it.
             */
            destination: string;
            /**
             * Due At
             * @description When it is due. Null if it waits for an event instead of a time.
             */
            due_at: string | null;
            /**
             * Expiration Seconds
             * @description Lifetime of the message, counted from the first sending.
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
             * @description Since when it is held or stalled. Null if it is not, or if unknown.
             */
            held_at: string | null;
            /**
             * Hint
             * @description What to do about it. Null if nothing needs to be done.
             */
            hint: string | null;
            /**
             * Id
             * @description Number of the row, in insertion order.
             */
            id: string;
            /** @description Last error of the broker, or what the message waits for. */
            last_error: components["schemas"]["Error"] | null;
            /** Masked */
            masked: boolean;
            /**
             * Message Id
             * @description Id of the message in every system. Null if a relay assigns it when sending.
             */
            message_id: string | null;
            /**
             * Next Attempt At
             * @description Earliest time of the next attempt, of the probe if there is one.
             */
            next_attempt_at: string | null;
            /** Ordering Key */
            ordering_key: string | null;
            /**
             * Preview
             * @description Beginning of the body, masked; for a binary body, its content type and size.
             */
            preview: string;
            /** Priority */
            priority: number;
            /**
             * Probe Id
             * @description Message that a relay retries for all that are held or stalled on the same route.
             */
            probe_id: string | null;
            /**
             * Reason
             * @description Why the message is in its state, and what happens next.
             */
            reason: string;
            /** Requeue Count */
            requeue_count: number;
            /**
             * Root Id
             * @description Id of the first message of the chain.
             */
            root_id: string | null;
            /** Routing Key */
            routing_key: string;
            /** Sent At */
            sent_at: string | null;
            /**
             * Size
             * @description Size of the body, in bytes.
             */
            size: number;
            state: components["schemas"]["MessageState"];
            /**
             * Target Queue
             * @description Queue that the message is addressed to, regardless of bindings.
             */
            target_queue: string | null;
            /**
             * Trace Id
             * @description Trace of the message, from its header `traceparent`: 32 hexadecimal digits. Null if none is sampled.
             */
            trace_id: string | null;
            /** Tracking Ids */
            tracking_ids: string[];
            /**
             * Version
             * @description Changes with the routing key, body and headers. An edit must name it.
             */
            version: number;
        };
        /**
         * MessageDelivery
         * @description Latest entry of the history about the message in one queue.
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
         * @description New routing key, body or headers for one message. At least one of them is required.
         */
        MessageEditRequest: {
            /**
             * Body
             * @description New body. If missing, the body does not change.
             */
            body?: unknown;
            /**
             * Encoding
             * @description Encoding of `body`.
             * @default json
             * @enum {string}
             */
            encoding: "json" | "text" | "base64";
            /**
             * Force
             * @description Accept a body that does not match a consumer's schema.
             * @default false
             */
            force: boolean;
            /** Headers */
            headers?: {
                [key: string]: unknown;
            } | null;
            /**
             * Reason
             * @description Reason for the audit log.
             */
            reason?: string | null;
            /**
             * Routing Key
             * @description Null keeps the current one.
             */
            routing_key?: string | null;
            /**
             * Version
             * @description The `version` that was read, to detect concurrent edits.
             */
            version: number;
        };
        /**
         * MessagePage
         * @description One page of the messages, with the number of messages in each state.
         */
        MessagePage: {
            /**
             * As Of
             * @description When the messages were counted.
             */
            as_of: string | null;
            /** Items */
            items: components["schemas"]["MessageSummary"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page. Null on the last page.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page. Null on the first page.
             */
            previous: string | null;
            sent_kept: components["schemas"]["Counted"] | null;
            /** @description Message counts by state, as in the backlog. Null if not counted yet. */
            states: components["schemas"]["StateCounts"] | null;
            /** @description Only with `total=true`. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * MessageSelector
         * @description Which messages of the outbox to change: either `ids` or `filter`.
         */
        MessageSelector: {
            filter?: components["schemas"]["WaitingFilters"] | null;
            /** Ids */
            ids?: number[] | null;
        };
        /**
         * MessageState
         * @description State of a message in the outbox.
         * @enum {string}
         */
        MessageState: "pending" | "scheduled" | "held" | "stalled" | "blocked" | "retrying" | "parked" | "sent";
        /**
         * MessageSummary
         * @description A message in the outbox, without its body.
         */
        MessageSummary: {
            /**
             * Attempt Count
             * @description Number of attempts to send it that the broker refused.
             */
            attempt_count: number;
            /** Content Type */
            content_type: string | null;
            /**
             * Created At
             * @description Null if the stored time is out of range.
             */
            created_at: string | null;
            /** Dedup Key */
            dedup_key: string | null;
            /**
             * Destination
             * @description Which relays send it: `default`, or a name that `Route` or `publish` gave it.
             */
            destination: string;
            /**
             * Due At
             * @description When it is due. Null if it waits for an event instead of a time.
             */
            due_at: string | null;
            /** Failed At */
            failed_at: string | null;
            /**
             * Held At
             * @description Since when it is held or stalled. Null if it is not, or if unknown.
             */
            held_at: string | null;
            /**
             * Id
             * @description Number of the row, in insertion order.
             */
            id: string;
            /** @description Last error of the broker, or what the message waits for. */
            last_error: components["schemas"]["Error"] | null;
            /**
             * Message Id
             * @description Id of the message in every system. Null if a relay assigns it when sending.
             */
            message_id: string | null;
            /** Ordering Key */
            ordering_key: string | null;
            /**
             * Preview
             * @description Beginning of the body, masked; for a binary body, its content type and size.
             */
            preview: string;
            /** Priority */
            priority: number;
            /** Requeue Count */
            requeue_count: number;
            /**
             * Root Id
             * @description Id of the first message of the chain.
             */
            root_id: string | null;
            /** Routing Key */
            routing_key: string;
            /** Sent At */
            sent_at: string | null;
            /**
             * Size
             * @description Size of the body, in bytes.
             */
            size: number;
            state: components["schemas"]["MessageState"];
            /**
             * Target Queue
             * @description Queue that the message is addressed to, regardless of bindings.
             */
            target_queue: string | null;
        };
        /**
         * Missing
         * @description The error for an unknown order.
         */
        Missing: {
            /** Detail */
            detail: string;
        };
        /**
         * MoveRequest
         * @description Moves deliveries to the front or the back of their queue.
         */
        MoveRequest: {
            /**
             * Confirm Token
             * @description The token that the dry run returned.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Return what would change, without changing it.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description Maximum number of messages, in list order.
             * @default 10000
             */
            max_items: number;
            /**
             * Reason
             * @description Reason for the audit log.
             */
            reason?: string | null;
            selector: components["schemas"]["DeliverySelector"];
            /**
             * To
             * @description `front`: before all due deliveries. `back`: after them.
             * @enum {string}
             */
            to: "front" | "back";
        };
        /**
         * NewOrder
         * @description A new order.
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
            /**
             * Version
             * @description Changes with the note.
             */
            version: number;
        };
        /**
         * NotedEvent
         * @description An event of the order.
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
         * @description One page of an operation's items with their outcomes, failed items first.
         */
        OperationItemPage: {
            /** Items */
            items: components["schemas"]["OperationItemResponse"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page. Null on the last page.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page. Null on the first page.
             */
            previous: string | null;
            /** @description Only with `total=true`. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * OperationItemResponse
         * @description A dead letter of an operation.
         */
        OperationItemResponse: {
            /**
             * Done Already
             * @description Whether it was skipped because it already is as the action would leave it.
             */
            done_already: boolean;
            /**
             * Failed Attempt Count
             * @description Number of failed attempts since the requeue.
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
             * @description Why the action was not done, or the error of the new attempt.
             */
            reason: string;
            /**
             * Result
             * @description Result of the requeued message. Null if it was not requeued.
             */
            result: ("waiting" | "retrying" | "handled" | "failed_again" | "unknown") | null;
        };
        /**
         * OperationOptions
         * @description Options of an operation.
         */
        OperationOptions: {
            canary: components["schemas"]["CanaryResponse"] | null;
            /**
             * Destination
             * @description Destination queue. Null: the queue where each message failed.
             */
            destination: string | null;
            /** Force */
            force: boolean;
            /**
             * Max Items
             * @description Maximum number of dead letters, the oldest first.
             */
            max_items: number | null;
            /**
             * Original Routing
             * @description Whether the routing key decides, instead of one queue.
             */
            original_routing: boolean;
            /** Rate Per Second */
            rate_per_second: number | null;
            /**
             * Starts At
             * @description Start time. Null: the time when the operation was created.
             */
            starts_at: string | null;
            /**
             * Stop On Failure Ratio
             * @description As requested. Null: 0.1, and a canary stops at the first failed attempt. 1: never stop.
             */
            stop_on_failure_ratio: number | null;
        };
        /**
         * OperationPage
         * @description One page of the operations, newest first.
         */
        OperationPage: {
            /** Items */
            items: components["schemas"]["OperationResponse"][];
            /**
             * Next
             * @description Pass it as `cursor` to get the next page. Null on the last page.
             */
            next: string | null;
            /**
             * Previous
             * @description Pass it as `cursor` to get the previous page. Null on the first page.
             */
            previous: string | null;
            /** @description Only with `total=true`. */
            total: components["schemas"]["Total"] | null;
        };
        /**
         * OperationResponse
         * @description A change of many dead letters, which maintenance processes in batches: the request and its progress.
         */
        OperationResponse: {
            action: components["schemas"]["Action"];
            /**
             * Active
             * @description Whether the operation is running or paused.
             */
            active: boolean;
            /**
             * Canary Ends At
             * @description When this wait ends at the latest.
             */
            canary_ends_at: string | null;
            /**
             * Canary Started At
             * @description When the wait for the results of the canary began.
             */
            canary_started_at: string | null;
            /**
             * Counts
             * @description Number of items by outcome.
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
             * @description The same as `results.failed_again`.
             */
            failed_again_count: number;
            /** Finished At */
            finished_at: string | null;
            /** Id */
            id: string;
            /**
             * Item Count
             * @description Number of dead letters in the operation.
             */
            item_count: number;
            /**
             * Items Per Second
             * @description Average rate, without waiting times.
             */
            items_per_second: number | null;
            /**
             * Next Batch At
             * @description When the next batch is due. Null if none is.
             */
            next_batch_at: string | null;
            options: components["schemas"]["OperationOptions"];
            /**
             * Progress
             * @description Fraction of items with an outcome.
             */
            progress: number;
            /** Reason */
            reason: string | null;
            /**
             * Remaining Seconds
             * @description Estimated from the rate. Null if there is no estimate.
             */
            remaining_seconds: number | null;
            /** Requested By */
            requested_by: string | null;
            /** @description Results of requeued messages. Null if it is no requeue. */
            results: components["schemas"]["OperationResults"] | null;
            /**
             * Selector
             * @description The requested selection, as resolved at `created_at`.
             */
            selector: components["schemas"]["OperationSelector"];
            /**
             * Settled Count
             * @description Items with an outcome, except those skipped when it ended early.
             */
            settled_count: number;
            state: components["schemas"]["OperationState"];
            /**
             * Stop Reason
             * @description Why the operation stopped itself. Null if it did not.
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
         * @description Results of the messages that a requeue has sent. All counts except `failed` add up to `sent`.
         *
         *     The counts stay current after the operation has ended.
         */
        OperationResults: {
            /**
             * Failed
             * @description Messages with at least one failed attempt, even if they were handled later.
             */
            failed: number;
            /**
             * Failed Again
             * @description Messages that were dead-lettered again, or parked.
             */
            failed_again: number;
            /** Handled */
            handled: number;
            /**
             * Retrying
             * @description Messages with a failed attempt that will be retried.
             */
            retrying: number;
            /**
             * Sent
             * @description Messages put into the outbox again.
             */
            sent: number;
            /**
             * Unknown
             * @description Messages without data for seven days.
             */
            unknown: number;
            /**
             * Waiting
             * @description Messages without a recorded attempt.
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
             * @description Number of selected ids.
             */
            count?: number | null;
            filter?: components["schemas"]["DeadLetterFilters"] | null;
            /**
             * Ids
             * @description The selected ids; only the first ones if there are many.
             */
            ids?: string[] | null;
        };
        /**
         * OperationState
         * @description State of an operation. `RUNNING` and `PAUSED` are active. `STOPPED`: ended by itself; `CANCELLED`: by an operator.
         * @enum {string}
         */
        OperationState: "running" | "paused" | "cancelled" | "stopped" | "finished";
        /**
         * OrderStatus
         * @description The status of an order.
         * @enum {string}
         */
        OrderStatus: "placed" | "paid" | "reserved" | "confirmed" | "rejected";
        /**
         * OrderView
         * @description An order with its events, oldest first.
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
         * OutboxProblem
         * @description Problem details (RFC 9457), with a stable `code` and the `request_id` that the log contains.
         */
        OutboxProblem: {
            /** @description Stable code of the problem, for scripts. */
            code: components["schemas"]["Code"];
            /**
             * Detail
             * @description What is wrong with this request, and what to do about it.
             */
            detail: string;
            /**
             * Request Id
             * @description Id of the request, as in the log and the header `X-Request-ID`.
             */
            request_id: string;
            /**
             * Status
             * @description HTTP status of the response.
             */
            status: number;
            /**
             * Title
             * @description The problem in one sentence, the same for every problem with this code.
             */
            title: string;
            /**
             * Type
             * @description Always `about:blank`: `code` identifies the problem.
             * @default about:blank
             */
            type: string;
        } & {
            [key: string]: unknown;
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
         * @description Kind of target that can be paused.
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
         * @description The id and the status of a new order.
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
         * PublishRequest
         * @description A message to publish, as an application would. Useful to test a consumer.
         */
        PublishRequest: {
            /**
             * Body
             * @description A JSON value; with the encodings `text` and `base64`, a string.
             */
            body: unknown;
            /**
             * Content Type
             * @description Media type of the body. Null: `application/json`, or with the encodings `text` and `base64` `application/octet-stream`. JSON in a string, with the encoding `text`, is published as it is written.
             */
            content_type?: string | null;
            /**
             * Destinations
             * @description Each sends it. The rules of publishers do not apply.
             * @default [
             *       "default"
             *     ]
             */
            destinations: string[];
            /**
             * Due At
             * @description When to send the message. Null: now.
             */
            due_at?: string | null;
            /**
             * Encoding
             * @description Encoding of `body`.
             * @default json
             * @enum {string}
             */
            encoding: "json" | "text" | "base64";
            /**
             * Force
             * @description Accept a body that does not match a consumer's schema.
             * @default false
             */
            force: boolean;
            /** Headers */
            headers?: {
                [key: string]: unknown;
            } | null;
            /**
             * Ordering Key
             * @description Messages with one key are sent in order.
             */
            ordering_key?: string | null;
            /**
             * Reason
             * @description Reason for the audit log.
             */
            reason?: string | null;
            /** Routing Key */
            routing_key: string;
        };
        /**
         * PublishedMessage
         * @description A published message.
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
            external: components["schemas"]["ExternalLinks"];
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
             * Trace Id
             * @description Trace of the attempt: 32 hexadecimal digits. It may be another one than that of its message. Null if the trace is not sampled, or the history of the attempt is missing.
             */
            trace_id: string | null;
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
         * @description A queue as the destination. It must exist.
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
         * @description Hours during which only errors are sent.
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
         * @description Outcome of a requeue. `IN_PROGRESS`: the history has none yet.
         * @enum {string}
         */
        RequeueOutcome: "in_progress" | "processed" | "failed_again" | "duplicate";
        /**
         * RequeuePolicyRequest
         * @description The new requeue policy of a group.
         */
        RequeuePolicyRequest: {
            /**
             * Id
             * @description Id, as `outbox_dlq_groups` returns it.
             */
            id: string;
            /**
             * Per Hour
             * @description Maximum number per hour. Null removes the policy.
             */
            per_hour: number | null;
        };
        /**
         * RequeuePolicyResponse
         * @description The automatic requeue of a group. Fields that do not apply are null.
         */
        RequeuePolicyResponse: {
            /**
             * Operation Id
             * @description Latest operation that the policy started.
             */
            operation_id: number | null;
            /**
             * Per Hour
             * @description Maximum number of requeues per hour. Null if there is no policy.
             */
            per_hour: number | null;
            /** Set At */
            set_at: string | null;
            /** Set By */
            set_by: string | null;
            /**
             * Started At
             * @description When this operation started.
             */
            started_at: string | null;
            /**
             * Stopped At
             * @description When the policy stopped. It requeues nothing until it is set again.
             */
            stopped_at: string | null;
            /** Stopped Because */
            stopped_because: string | null;
        };
        /**
         * RequeueRequest
         * @description Requeues dead letters. More than 100 ids, a filter, a group, a rate, a canary or a start time make it an operation.
         */
        RequeueRequest: {
            canary?: components["schemas"]["CanaryRequest"] | null;
            /**
             * Confirm Token
             * @description The token that the dry run returned.
             */
            confirm_token?: string | null;
            /**
             * Destination
             * @description `original_routing`: all queues bound for the routing key now. Null: the queue where each message failed.
             */
            destination?: components["schemas"]["QueueDestination"] | "original_routing" | null;
            /**
             * Dry Run
             * @description Return what would change, without changing it.
             * @default false
             */
            dry_run: boolean;
            /** @description New body or headers. Only with a single id. */
            edit?: components["schemas"]["EditRequest"] | null;
            /**
             * Force
             * @description Include messages older than the deduplication window, which may run twice, and accept edits that do not match a consumer's schema.
             * @default false
             */
            force: boolean;
            /**
             * Max Items
             * @description Maximum number, the oldest first.
             */
            max_items?: number | null;
            /** Rate Per Second */
            rate_per_second?: number | null;
            /**
             * Reason
             * @description Reason for the audit log.
             */
            reason?: string | null;
            selector: components["schemas"]["Selector"];
            /**
             * Starts At
             * @description Start time, at most 30 days ahead. Null: now.
             */
            starts_at?: string | null;
            /**
             * Stop On Failure Ratio
             * @description The operation stops when more than this fraction of its messages have a failed attempt and were not handled since. Null: 0.1, and a canary stops at the first failed attempt. 1: never stop.
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
            /** @description `duplicate`: skipped, because the inbox already contained it. */
            outcome: components["schemas"]["RequeueOutcome"];
            /**
             * Queue
             * @description Queue that it was requeued to. Null: all queues bound for its routing key.
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
         * @description Changes the due time of messages, their priority, or both.
         */
        RescheduleRequest: {
            /**
             * Confirm Token
             * @description The token that the dry run returned.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Return what would change, without changing it.
             * @default false
             */
            dry_run: boolean;
            /**
             * Due At
             * @description New due time; a past time means now. Null keeps it.
             */
            due_at?: string | null;
            /**
             * Max Items
             * @description Maximum number of messages, in list order.
             * @default 10000
             */
            max_items: number;
            /**
             * Priority
             * @description New priority, highest first. Null keeps the old one.
             */
            priority?: number | null;
            /**
             * Reason
             * @description Reason for the audit log.
             */
            reason?: string | null;
            selector: components["schemas"]["MessageSelector"];
        };
        /**
         * RestoreRequest
         * @description Restores discarded dead letters to open.
         */
        RestoreRequest: {
            /**
             * Confirm Token
             * @description The token that the dry run returned.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Return what would change, without changing it.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description Maximum number, the oldest first.
             */
            max_items?: number | null;
            /**
             * Reason
             * @description Reason for the audit log.
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
         * @description Makes deliveries that wait for their next attempt due now.
         */
        RetryRequest: {
            /**
             * Confirm Token
             * @description The token that the dry run returned.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Return what would change, without changing it.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description Maximum number of messages, in list order.
             * @default 10000
             */
            max_items: number;
            /**
             * Reason
             * @description Reason for the audit log.
             */
            reason?: string | null;
            selector: components["schemas"]["DeliverySelector"];
        };
        /**
         * Role
         * @description Role of a principal. Viewers read; operators also repair, pause and reveal masked values; admins also delete for good.
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
         * @description A matching dead letter, with its preview and error masked.
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
         * @description Matches, exact ids first.
         */
        SearchResponse: {
            /**
             * Incomplete
             * @description Kinds that could not be searched: too slow, or unavailable.
             */
            incomplete: ("message" | "delivery" | "dead_letter" | "chain" | "queue" | "routing_key" | "component")[];
            /** Items */
            items: components["schemas"]["SearchResult"][];
        };
        /**
         * SearchResult
         * @description A match.
         */
        SearchResult: {
            /**
             * Detail
             * @description State and other details.
             */
            detail: string;
            /**
             * Id
             * @description Id, number or name, for the endpoint of this kind.
             */
            id: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "message" | "delivery" | "dead_letter" | "chain" | "queue" | "routing_key" | "component";
            /**
             * Queue
             * @description Queue where the match is, or where it failed.
             */
            queue: string | null;
            /** Title */
            title: string;
        };
        /**
         * Selector
         * @description Which dead letters to change: exactly one of `ids`, `filter` and `group_id`.
         *
         *     A filter without a status matches the dead letters that the action applies to.
         */
        Selector: {
            filter?: components["schemas"]["DeadLetterFilters"];
            /**
             * Group Id
             * @description Fingerprint of a group.
             */
            group_id?: string;
            /** Ids */
            ids?: (string | number)[];
        } & (unknown | unknown | unknown);
        /**
         * SendNowRequest
         * @description Makes messages due now, regardless of whether they wait for a time, a queue, or a retry.
         */
        SendNowRequest: {
            /**
             * Confirm Token
             * @description The token that the dry run returned.
             */
            confirm_token?: string | null;
            /**
             * Dry Run
             * @description Return what would change, without changing it.
             * @default false
             */
            dry_run: boolean;
            /**
             * Max Items
             * @description Maximum number of messages, in list order.
             * @default 10000
             */
            max_items: number;
            /**
             * Priority
             * @description New priority, highest first. Null keeps the old one.
             */
            priority?: number | null;
            /**
             * Reason
             * @description Reason for the audit log.
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
             * @description Most unsent messages that were measured for a destination; by queue, messages that wait for a worker.
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
         * @description A logged-in browser.
         */
        SessionResponse: {
            /**
             * By Provider
             * @description Whether the login was at a provider, whose claims gave the role.
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
         * @description Component that dead-lettered a message: a relay that could not send it, a worker whose handler failed, or the broker.
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
         * @description Result of the test for one webhook.
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
         * @description A configured token, without the secret and its hash.
         */
        TokenResponse: {
            /** Expired */
            expired: boolean;
            /**
             * Id
             * @description Id for `DELETE /access/tokens/{id}`.
             */
            id: string;
            /**
             * Last Day
             * @description Last day on which the token is valid, in UTC. Null if it does not expire.
             */
            last_day: string | null;
            /** Name */
            name: string;
            /**
             * Revoked At
             * @description Null if the token was not revoked.
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
            code: "relays_disagree" | "management_unreachable" | "unroutable" | "queue_without_consumer" | "subscription_without_consumer" | "exchange_missing" | "queue_missing" | "dead_letter_queue_missing" | "retry_queue_missing" | "dead_letters_vanish" | "queue_limit" | "old_binding";
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
         * @description Total number of items in a list.
         */
        Total: {
            /**
             * Relation
             * @description `eq`: exact. `gte`: at least this many; counting stops at a limit.
             * @enum {string}
             */
            relation: "eq" | "gte";
            /** Value */
            value: number;
        };
        /**
         * Unarchived
         * @description Number of dead letters that are still at the broker. Lists do not contain them until an archiver has stored them.
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
             * @description Counts by queue, without empty queues.
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
         * @description A problem that needs attention.
         */
        VerdictFinding: {
            /**
             * Code
             * @description Stable code of the problem.
             * @enum {string}
             */
            code: "database_unreachable" | "broker_unreachable" | "outbox_late" | "clock_behind" | "destination_unserved" | "messages_parked" | "messages_held" | "messages_stalled" | "queue_late" | "queue_deep" | "paused" | "no_relay" | "no_worker" | "no_maintenance" | "no_archiver" | "component_late" | "component_lost" | "component_waiting" | "consumer_failing" | "history_lost" | "dead_letters" | "relays_disagree" | "management_unreachable" | "unroutable" | "queue_without_consumer" | "subscription_without_consumer" | "exchange_missing" | "queue_missing" | "dead_letter_queue_missing" | "retry_queue_missing" | "dead_letters_vanish" | "queue_limit" | "old_binding";
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
             * @description When the problem began. Null if unknown.
             */
            started_at: string | null;
            /**
             * Subject
             * @description Name of the affected object. Empty if all of this kind are affected.
             */
            subject: string;
            /**
             * Subject Kind
             * @description `outbox`, `queue`, `exchange`, `destination`, `relay`, `worker`, `archiver`, `maintenance`, `broker` or `database`.
             */
            subject_kind: string;
            /** Summary */
            summary: string;
        };
        /**
         * VerdictResponse
         * @description Health of the installation.
         */
        VerdictResponse: {
            /**
             * As Of
             * Format: date-time
             */
            as_of: string;
            /**
             * Findings
             * @description Findings, most severe first.
             */
            findings: components["schemas"]["VerdictFinding"][];
            /**
             * Started At
             * @description When the first finding of this severity began, if known.
             */
            started_at: string | null;
            /**
             * Status
             * @description Highest severity of the findings.
             * @enum {string}
             */
            status: "ok" | "warning" | "error";
            thresholds: components["schemas"]["HealthThresholdsResponse"];
        };
        /**
         * WaitReason
         * @description Why a delivery waits. `FAILING`: its worker has paused itself because the handler fails. `NEXT`: it is next in line.
         * @enum {string}
         */
        WaitReason: "paused" | "no_consumer" | "failing" | "retry" | "behind" | "next";
        /**
         * WaitingFilters
         * @description Messages of the outbox in one state, which match all other conditions.
         */
        WaitingFilters: {
            /**
             * Created After
             * @description Created at this time or later.
             */
            created_after?: string | null;
            /**
             * Created Before
             * @description Created before this time.
             */
            created_before?: string | null;
            /**
             * Destination
             * @description Destination, such as `default`.
             */
            destination?: string | null;
            /**
             * Message Id
             * @description Id of the message itself.
             */
            message_id?: string | null;
            /**
             * Ordering Key
             * @description Ordering key. Unsent messages are in sending order.
             */
            ordering_key?: string | null;
            /**
             * Routing Key
             * @description Routing key. A trailing `*` matches any ending.
             */
            routing_key?: string | null;
            /**
             * State
             * @enum {string}
             */
            state: "pending" | "scheduled" | "held" | "stalled" | "blocked" | "retrying";
            /**
             * Target Queue
             * @description Queue that the message is addressed to.
             */
            target_queue?: string | null;
            /**
             * Tracking Id
             * @description Id of the message, or of one of its causes.
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_alerts_list: {
        parameters: {
            query?: {
                /** @description Maximum number of items. */
                limit?: number;
                /** @description `next` or `previous` of an earlier page, with the same filter. */
                cursor?: string | null;
                /** @description Count all matching items, up to 10,000. */
                total?: boolean;
                /** @description `open`: the condition holds. Default: both. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_asyncapi_show: {
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
                    "application/json": components["schemas"]["AsyncApiDocument"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_audit_list: {
        parameters: {
            query?: {
                /** @description Maximum number of items. */
                limit?: number;
                /** @description `next` or `previous` of an earlier page, with the same filter. */
                cursor?: string | null;
                /** @description Count all matching items, up to 10,000. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_deliveries_list: {
        parameters: {
            query: {
                /** @description Maximum number of items. */
                limit?: number;
                /** @description `next` or `previous` of an earlier page, with the same filter. */
                cursor?: string | null;
                /** @description Count all matching items, up to 10,000. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_supported`: The broker does not support this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_deliveries_dead_letter: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `not_supported`: The broker does not support this or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_deliveries_move: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `not_supported`: The broker does not support this or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_deliveries_retry: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `not_supported`: The broker does not support this or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_supported`: The broker does not support this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_discard: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
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
            /** @description An operation was created. Its dead letters are fixed now; maintenance processes them in batches. */
            202: {
                headers: {
                    /** @description Path of the operation. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `count_drifted`: The selected dead letters have changed since the dry run or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_dlq_list: {
        parameters: {
            query?: {
                /** @description Maximum number of items. */
                limit?: number;
                /** @description `next` or `previous` of an earlier page, with the same filter. */
                cursor?: string | null;
                /** @description Count all matching items, up to 10,000. */
                total?: boolean;
                /** @description What dead-lettered the message: a `relay` that could not send it, a `worker` whose handler failed, or the `broker`. */
                source?: components["schemas"]["Source"] | null;
                /** @description Queue where the message failed. */
                queue?: string | string[] | null;
                /** @description Exact routing key. */
                routing_key?: string | string[] | null;
                /** @description Type of the exception, with its module. */
                exception_type?: string | string[] | null;
                /** @description Fingerprint of the group, as `outbox_dlq_groups` returns it. */
                group_id?: string | null;
                /** @description Status. `open`: neither requeued nor discarded. */
                status?: ("open" | "requeued" | "discarded" | "any") | ("open" | "requeued" | "discarded" | "any")[];
                /** @description Id of the message, or of one of its causes. */
                tracking_id?: string | null;
                /** @description Id of the message itself. */
                message_id?: string | null;
                /** @description Dead-lettered at this time or later. */
                failed_after?: string | null;
                /** @description Dead-lettered before this time. */
                failed_before?: string | null;
                /** @description Minimum number of failed attempts. */
                min_failures?: number | null;
                /** @description Destination whose relay could not send the message. */
                destination?: string | null;
                /** @description Search in errors and bodies: words, "phrases", or, -word. */
                q?: string | null;
                /** @description By time of dead-lettering. */
                sort?: "newest" | "oldest";
                /** @description Count by source, status, queue, exception type and routing key. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_dlq_groups: {
        parameters: {
            query?: {
                /** @description What dead-lettered the message: a `relay` that could not send it, a `worker` whose handler failed, or the `broker`. */
                source?: components["schemas"]["Source"] | null;
                /** @description Queue where the message failed. */
                queue?: string | string[] | null;
                /** @description Exact routing key. */
                routing_key?: string | string[] | null;
                /** @description Type of the exception, with its module. */
                exception_type?: string | string[] | null;
                /** @description Fingerprint of the group, as `outbox_dlq_groups` returns it. */
                group_id?: string | null;
                /** @description Status. `open`: neither requeued nor discarded. */
                status?: ("open" | "requeued" | "discarded" | "any") | ("open" | "requeued" | "discarded" | "any")[];
                /** @description Id of the message, or of one of its causes. */
                tracking_id?: string | null;
                /** @description Id of the message itself. */
                message_id?: string | null;
                /** @description Dead-lettered at this time or later. */
                failed_after?: string | null;
                /** @description Dead-lettered before this time. */
                failed_before?: string | null;
                /** @description Minimum number of failed attempts. */
                min_failures?: number | null;
                /** @description Destination whose relay could not send the message. */
                destination?: string | null;
                /** @description Search in errors and bodies: words, "phrases", or, -word. */
                q?: string | null;
                /** @description Field to group by. `fingerprint` identifies similar errors. */
                by?: "fingerprint" | "queue" | "routing_key";
                /** @description Only groups with these statuses. Requires `by=fingerprint`. */
                group_status?: components["schemas"]["GroupStatus"] | components["schemas"]["GroupStatus"][] | null;
                /** @description Maximum number of groups, the largest first. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `version_conflict`: It was changed in the meantime */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_dlq_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Fingerprint of the group. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_dlq_show: {
        parameters: {
            query?: {
                /** @description Show masked values. Requires the operator role, and is audited. */
                reveal?: boolean;
            };
            header?: never;
            path: {
                /** @description `17`, or `outbox-17` for a parked message. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_dlq_body: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description `17`, or `outbox-17` for a parked message. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_streams`: Too many streams are open or `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                /** @description What dead-lettered the message: a `relay` that could not send it, a `worker` whose handler failed, or the `broker`. */
                source?: components["schemas"]["Source"] | null;
                /** @description Queue where the message failed. */
                queue?: string | string[] | null;
                /** @description Exact routing key. */
                routing_key?: string | string[] | null;
                /** @description Type of the exception, with its module. */
                exception_type?: string | string[] | null;
                /** @description Fingerprint of the group, as `outbox_dlq_groups` returns it. */
                group_id?: string | null;
                /** @description Status. `open`: neither requeued nor discarded. */
                status?: ("open" | "requeued" | "discarded" | "any") | ("open" | "requeued" | "discarded" | "any")[];
                /** @description Id of the message, or of one of its causes. */
                tracking_id?: string | null;
                /** @description Id of the message itself. */
                message_id?: string | null;
                /** @description Dead-lettered at this time or later. */
                failed_after?: string | null;
                /** @description Dead-lettered before this time. */
                failed_before?: string | null;
                /** @description Minimum number of failed attempts. */
                min_failures?: number | null;
                /** @description Destination whose relay could not send the message. */
                destination?: string | null;
                /** @description Search in errors and bodies: words, "phrases", or, -word. */
                q?: string | null;
                /** @description By time of dead-lettering. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                /** @description Routing key. A trailing `*` matches any ending. */
                routing_key?: string | null;
                /** @description Ordering key. Unsent messages are in sending order. */
                ordering_key?: string | null;
                /** @description Id of the message itself. */
                message_id?: string | null;
                /** @description Id of the message, or of one of its causes. */
                tracking_id?: string | null;
                /** @description Queue that the message is addressed to. */
                target_queue?: string | null;
                /** @description Destination, such as `default`. */
                destination?: string | null;
                /** @description Created at this time or later. */
                created_after?: string | null;
                /** @description Created before this time. */
                created_before?: string | null;
                /** @description State of the message. Without it, messages of all states. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                /** @description Only operations that are running or paused. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_messages_list: {
        parameters: {
            query?: {
                /** @description Maximum number of items. */
                limit?: number;
                /** @description `next` or `previous` of an earlier page, with the same filter. */
                cursor?: string | null;
                /** @description Count all matching items, up to 10,000. */
                total?: boolean;
                /** @description Routing key. A trailing `*` matches any ending. */
                routing_key?: string | null;
                /** @description Ordering key. Unsent messages are in sending order. */
                ordering_key?: string | null;
                /** @description Id of the message itself. */
                message_id?: string | null;
                /** @description Id of the message, or of one of its causes. */
                tracking_id?: string | null;
                /** @description Queue that the message is addressed to. */
                target_queue?: string | null;
                /** @description Destination, such as `default`. */
                destination?: string | null;
                /** @description Created at this time or later. */
                created_after?: string | null;
                /** @description Created before this time. */
                created_before?: string | null;
                /** @description State of the message. Without it, messages of all states. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_messages_publish: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `invalid_edit`: The edited message is invalid or `header_locked`: The header is reserved or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable or `body_store_unavailable`: The store of large bodies is unavailable or `keys_unavailable`: The provider of encryption keys is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_messages_cancel: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_messages_reschedule: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_messages_send_now: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `filter_too_broad`: The filter would take too long or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_messages_show: {
        parameters: {
            query?: {
                /** @description Show masked values. Requires the operator role, and is audited. */
                reveal?: boolean;
            };
            header?: never;
            path: {
                /** @description Number of the row: `17` or `outbox-17`. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_messages_edit: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                /** @description Number of the row. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `version_conflict`: It was changed in the meantime or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `invalid_edit`: The edited message is invalid or `header_locked`: The header is reserved or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable or `body_store_unavailable`: The store of large bodies is unavailable or `keys_unavailable`: The provider of encryption keys is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_operations_list: {
        parameters: {
            query?: {
                /** @description Maximum number of items. */
                limit?: number;
                /** @description `next` or `previous` of an earlier page, with the same filter. */
                cursor?: string | null;
                /** @description Count all matching items, up to 10,000. */
                total?: boolean;
                /** @description Only operations that are running or paused. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_operations_show: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the operation. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_operations_cancel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the operation. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_operations_items: {
        parameters: {
            query?: {
                /** @description Maximum number of items. */
                limit?: number;
                /** @description `next` or `previous` of an earlier page, with the same filter. */
                cursor?: string | null;
                /** @description Count all matching items, up to 10,000. */
                total?: boolean;
                /** @description Only items with this outcome. */
                outcome?: ("failed_again" | "refused" | "not_found" | "skipped" | "pending" | "requeued" | "discarded" | "restored" | "purged") | null;
            };
            header?: never;
            path: {
                /** @description Id of the operation. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `unauthenticated`: Authentication required */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_operations_pause: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the operation. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_operations_resume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the operation. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_requeue: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
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
            /** @description An operation was created. Its dead letters are fixed now; maintenance processes them in batches. */
            202: {
                headers: {
                    /** @description Path of the operation. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `count_drifted`: The selected dead letters have changed since the dry run or `version_conflict`: It was changed in the meantime or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `invalid_edit`: The edited message is invalid or `header_locked`: The header is reserved or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable or `broker_unavailable`: The broker is unavailable or `body_store_unavailable`: The store of large bodies is unavailable or `keys_unavailable`: The provider of encryption keys is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_restore: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key for this change. Repeating the request with the same key within a day returns the first response and changes nothing. */
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
            /** @description An operation was created. Its dead letters are fixed now; maintenance processes them in batches. */
            202: {
                headers: {
                    /** @description Path of the operation. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this or `count_drifted`: The selected dead letters have changed since the dry run or `request_running`: The same request is still running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request or `key_reused`: The idempotency key was used for another request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `confirmation_required`: A dry run is required first */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
    outbox_search: {
        parameters: {
            query: {
                /** @description Text to search for. */
                q: string;
                /** @description Maximum number of matches of each kind. */
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this or `cross_site`: The request comes from another site or `read_only`: This installation is read-only */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_slow`: The request body arrived too slowly */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `conflict`: The state does not allow this */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `body_too_large`: The request body is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
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
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `forbidden`: The role does not allow this */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `invalid_request`: Invalid request */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `too_many_logins`: Too many failed logins or `too_many_requests`: Too many concurrent requests of one principal */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
            /** @description `schema_outdated`: The database lacks a table, column or privilege that this release uses or `database_unavailable`: The database is unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutboxProblem"];
                };
            };
        };
    };
}
