import type { Action, Plan, Selector } from "~/api/repairs";
import { number, plural } from "~/lib/format";
import { Empty, Icon, Loading, Moment } from "~/ui";
import { Bars } from "./Bars";
import styles from "./Seen.module.css";
import type { Repairing } from "./useRepairing";
import { WORDS } from "./words";

/** What the dry run found: how many, where and of what they died, the first of them, and what to think of before. */
export function Seen({
  action,
  selector,
  repairing: { run, pinned, options },
}: {
  action: Action;
  selector: Selector;
  repairing: Repairing;
}) {
  const plan = run.data;
  if (!plan) return run.error ? <div /> : <Loading lines={6} />;
  return (
    <section className={styles.seen} aria-label="What the dry run found" aria-busy={run.isFetching}>
      <Headline
        action={action}
        selector={selector}
        plan={plan}
        isLooking={run.isFetching}
        isCut={options.maxItems !== ""}
      />
      {pinned && (
        <p className="quiet">
          Those that died after <Moment at={pinned.at} short /> are left out, so that the number holds.
        </p>
      )}
      {plan.warnings.length > 0 && <Warnings of={plan.warnings} />}
      {plan.count > 0 && (
        <>
          <Bars title="By queue" of={plan.byQueue} nameless="parked in the outbox" />
          <Bars title="By exception" of={plan.byException} nameless="no exception" shorten={lastPart} />
          <Sample of={plan} />
        </>
      )}
    </section>
  );
}

function Headline({
  action,
  selector,
  plan,
  isLooking,
  isCut,
}: {
  action: Action;
  selector: Selector;
  plan: Plan;
  isLooking: boolean;
  /** Some may be left out because more were not wanted. */
  isCut: boolean;
}) {
  const words = WORDS[action];
  const named = "ids" in selector ? new Set(selector.ids).size : undefined;
  const skipped = named === undefined || isCut ? 0 : named - plan.count;
  if (plan.count === 0)
    return (
      <Empty title={`Nothing would be ${words.participle}.`}>
        {named === undefined
          ? "Nothing fits by now."
          : named === 1
            ? `It is not ${words.needed}, or gone.`
            : `None of the ${number(named)} is ${words.needed}.`}
      </Empty>
    );
  return (
    <div aria-live="polite">
      <p className={styles.headline}>
        <strong>{number(plan.count)}</strong> would be {words.participle}
        {isLooking && <span className="quiet"> · looking again …</span>}
      </p>
      {skipped > 0 && (
        <p className="quiet">
          {plural(skipped, "is", "are")} left out: not {words.needed}, or gone.
        </p>
      )}
    </div>
  );
}

/** Of a name with its module the name. */
function lastPart(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1);
}

function Warnings({ of }: { of: readonly string[] }) {
  return (
    <ul className={styles.warnings} aria-label="Warnings">
      {of.map((warning) => (
        <li key={warning}>
          <Icon name="dead" />
          <span>{warning}</span>
        </li>
      ))}
    </ul>
  );
}

function Sample({ of: { sample, count } }: { of: Plan }) {
  return (
    <div>
      <h3 className={styles.title}>{sample.length < count ? "The oldest of them" : "All of them"}</h3>
      <ol className={styles.sample}>
        {sample.map(({ id, queue, error, failedAt, preview }) => (
          <li key={id}>
            <p className={styles.who}>
              <strong>{id}</strong>
              <span>{queue || "parked"}</span>
              <Moment at={failedAt} short />
            </p>
            <p className={styles.line} title={error.message}>
              {lastPart(error.type)}: {error.message}
            </p>
            <code className={styles.line} title={preview}>
              {preview}
            </code>
          </li>
        ))}
      </ol>
    </div>
  );
}
