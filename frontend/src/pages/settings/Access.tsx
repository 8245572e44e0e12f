import { useState } from "react";
import { type Access, useAccess, useEndSession } from "~/api/access";
import { inOneLine } from "~/api/problems";
import * as common from "~/texts/common";
import * as texts from "~/texts/settings";
import { Ago, announce, Badge, Button, Dialog, DialogClose, Loaded, Panel, Table } from "~/ui";

type Session = Access["sessions"][number];

/** Who may log in, and who is logged in: for administrators. */
export function AccessList() {
  const query = useAccess();
  const [ending, setEnding] = useState<Session>();
  return (
    <Loaded query={query}>
      {({ tokens, sessions }) => (
        <>
          <Panel title={texts.tokens} flush={tokens.length > 0}>
            {tokens.length === 0 ? (
              <p className="quiet">{texts.noTokens}</p>
            ) : (
              <Table label={texts.tokensTable} head={[texts.name, texts.role, texts.validUntil]}>
                {tokens.map(({ name, role, last_day, expired }, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a name may have several tokens
                  <tr key={`${name} ${index}`}>
                    <th scope="row">{name}</th>
                    <td>{role}</td>
                    <td>
                      {last_day ?? texts.unlimited} {expired && <Badge tone="bad">{texts.expired}</Badge>}
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
                label={texts.sessionsTable}
                head={[texts.name, texts.role, texts.loggedIn, texts.sessionEnds, texts.action]}
              >
                {sessions.map((one) => (
                  <tr key={one.id}>
                    <th scope="row">{one.name}</th>
                    <td>{one.role}</td>
                    <td>
                      <Ago at={one.created_at} />
                    </td>
                    <td>
                      <Ago at={one.expires_at} />
                    </td>
                    <td>
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
          {ending && <EndDialog of={ending} onClose={() => setEnding(undefined)} />}
        </>
      )}
    </Loaded>
  );
}

function EndDialog({ of: one, onClose }: { of: Session; onClose(): void }) {
  const { mutate, isPending } = useEndSession();
  const end = () =>
    mutate(one.id, {
      onSuccess() {
        announce(texts.sessionEnded(one.name));
        onClose();
      },
      onError: (thrown) => announce(inOneLine(thrown), "bad"),
    });
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.endSessionOf(one.name)}
      description={texts.endSessionHint}
      actions={
        <>
          <DialogClose>{common.cancel}</DialogClose>
          <Button look="danger" busy={isPending} onClick={end}>
            {texts.endSession}
          </Button>
        </>
      }
    />
  );
}
