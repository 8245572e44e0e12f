import { useState } from "react";
import { type Access, useAccess, useEndSession, useRevokeToken } from "~/api/access";
import { describeFailure } from "~/api/problems";
import * as common from "~/texts/common";
import * as texts from "~/texts/settings";
import { Ago, announce, Badge, Button, Dialog, DialogClose, Loaded, Panel, Table } from "~/ui";

type Session = Access["sessions"][number];
type Token = Access["tokens"][number];

/** Tokens and sessions, for administrators. */
export function AccessList() {
  const query = useAccess();
  const [ending, setEnding] = useState<Session>();
  const [revoking, setRevoking] = useState<Token>();
  const end = useEndSession();
  const revoke = useRevokeToken();
  return (
    <Loaded query={query}>
      {({ tokens, sessions }) => (
        <>
          <Panel title={texts.tokens} flush={tokens.length > 0}>
            {tokens.length === 0 ? (
              <p className="quiet">{texts.noTokens}</p>
            ) : (
              <Table
                folds
                label={texts.tokensTable}
                head={[texts.name, texts.role, texts.validUntil, texts.action]}
              >
                {tokens.map((one) => (
                  <tr role="row" key={one.id}>
                    <th role="rowheader" scope="row">
                      {one.name}
                    </th>
                    <td role="cell">{one.role}</td>
                    <td role="cell">
                      <span data-head>{texts.validUntil} </span>
                      {one.last_day ?? texts.unlimited}{" "}
                      {one.expired && <Badge tone="bad">{texts.expired}</Badge>}
                      {one.revoked_at && (
                        <>
                          <Badge tone="bad">{texts.revoked}</Badge> <Ago at={one.revoked_at} />{" "}
                          {one.revoked_by && texts.by(one.revoked_by)}
                        </>
                      )}
                    </td>
                    <td role="cell">
                      {!one.revoked_at && (
                        <Button onClick={() => setRevoking(one)}>
                          {texts.revoke}
                          <span className="unseen"> {texts.of(one.name)}</span>
                        </Button>
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
            )}
          </Panel>
          <Panel title={texts.sessions} flush={sessions.length > 0}>
            {sessions.length === 0 ? (
              <p className="quiet">{texts.noSessions}</p>
            ) : (
              <Table
                folds
                label={texts.sessionsTable}
                head={[texts.name, texts.role, texts.loggedIn, texts.sessionEnds, texts.action]}
              >
                {sessions.map((one) => (
                  <tr role="row" key={one.id}>
                    <th role="rowheader" scope="row">
                      {one.name} {one.by_provider && <span className="quiet">{texts.byProvider}</span>}
                    </th>
                    <td role="cell">{one.role}</td>
                    <td role="cell">
                      <span data-head>{texts.loggedIn} </span>
                      <Ago at={one.created_at} />
                    </td>
                    <td role="cell">
                      <span data-head>{texts.sessionEnds} </span>
                      <Ago at={one.expires_at} />
                    </td>
                    <td role="cell">
                      <Button onClick={() => setEnding(one)}>
                        {texts.endSession}
                        <span className="unseen"> {texts.of(one.name)}</span>
                      </Button>
                    </td>
                  </tr>
                ))}
              </Table>
            )}
          </Panel>
          {ending && (
            <EndDialog
              title={texts.endSessionOf(ending.name)}
              hint={texts.endSessionHint}
              action={texts.endSession}
              done={texts.sessionEnded(ending.name)}
              id={ending.id}
              mutation={end}
              onClose={() => setEnding(undefined)}
            />
          )}
          {revoking && (
            <EndDialog
              title={texts.revokeOf(revoking.name)}
              hint={texts.revokeHint}
              action={texts.revoke}
              done={texts.tokenRevoked(revoking.name)}
              id={revoking.id}
              mutation={revoke}
              onClose={() => setRevoking(undefined)}
            />
          )}
        </>
      )}
    </Loaded>
  );
}

/** Asks before ending a session or revoking a token. */
function EndDialog({
  title,
  hint,
  action,
  done,
  id,
  mutation: { mutate, isPending },
  onClose,
}: {
  title: string;
  hint: string;
  action: string;
  done: string;
  id: string;
  mutation: ReturnType<typeof useEndSession>;
  onClose(): void;
}) {
  const end = () =>
    mutate(id, {
      onSuccess() {
        announce(done);
        onClose();
      },
      onError: (thrown) => announce(describeFailure(thrown), "bad"),
    });
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      description={hint}
      actions={
        <>
          <DialogClose>{common.cancel}</DialogClose>
          <Button look="danger" busy={isPending} onClick={end}>
            {action}
          </Button>
        </>
      }
    />
  );
}
