import type { Action, DryRun, Selector } from "~/api/repairs";
import { number } from "~/lib/format";
import * as texts from "~/texts/repairs";
import { Empty, Icon, Loading, Moment } from "~/ui";
import { ACTION_TEXTS } from "./action-texts";
import { Bars } from "./Bars";
import styles from "./DryRunResult.module.css";
import type { RepairForm } from "./useRepairForm";

/** Result of the dry run: count, warnings, counts by queue and exception, and a sample. */
export function DryRunResult({
  action,
  selector,
  repairForm: { run, pinned, options },
}: {
  action: Action;
  selector: Selector;
  repairForm: RepairForm;
}) {
  const dryRun = run.data;
  if (!dryRun) return run.error ? <div /> : <Loading lines={6} />;
  return (
    <section className={styles.result} aria-label={texts.dryRun} aria-busy={run.isFetching}>
      <Headline
        action={action}
        selector={selector}
        dryRun={dryRun}
        isChecking={run.isFetching}
        isLimited={options.maxItems !== ""}
      />
      {pinned && (
        <p className="quiet">
          {texts.failedAfter} <Moment at={pinned.at} short />.
        </p>
      )}
      {dryRun.warnings.length > 0 && <Warnings of={dryRun.warnings} />}
      {dryRun.count > 0 && (
        <>
          <Bars title={texts.byQueue} of={dryRun.byQueue} nameless={texts.parkedInOutbox} />
          <Bars
            title={texts.byException}
            of={dryRun.byException}
            nameless={texts.noException}
            shorten={lastPart}
          />
          <Sample of={dryRun} />
        </>
      )}
    </section>
  );
}

function Headline({
  action,
  selector,
  dryRun,
  isChecking,
  isLimited,
}: {
  action: Action;
  selector: Selector;
  dryRun: DryRun;
  isChecking: boolean;
  /** Whether a limit applies, so that some may be left out. */
  isLimited: boolean;
}) {
  const words = ACTION_TEXTS[action];
  const named = "ids" in selector ? new Set(selector.ids).size : undefined;
  const skipped = named === undefined || isLimited ? 0 : named - dryRun.count;
  if (dryRun.count === 0)
    return (
      <Empty title={texts.nothingToDo(words.participle)}>
        {named === undefined
          ? texts.noMatch
          : named === 1
            ? texts.notEligible(words.needed)
            : texts.noneEligible(named, words.needed)}
      </Empty>
    );
  return (
    <div aria-live="polite">
      <p className={styles.headline}>
        <strong>{number(dryRun.count)}</strong> {texts.wouldBe(words.participle)}
        {isChecking && <span className="quiet"> {texts.checking}</span>}
      </p>
      {skipped > 0 && <p className="quiet">{texts.skipped(skipped, words.needed)}</p>}
    </div>
  );
}

/** Returns a name without its module. */
function lastPart(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1);
}

function Warnings({ of }: { of: readonly string[] }) {
  return (
    <ul className={styles.warnings} aria-label={texts.warnings}>
      {of.map((warning) => (
        <li key={warning}>
          <Icon name="dead" />
          <span>{warning}</span>
        </li>
      ))}
    </ul>
  );
}

function Sample({ of: { sample, count } }: { of: DryRun }) {
  return (
    <div>
      <h3 className={styles.title}>{sample.length < count ? texts.oldest : texts.allShown}</h3>
      <ol className={styles.sample}>
        {sample.map(({ id, queue, error, failedAt, preview }) => (
          <li key={id}>
            <p className={styles.subject}>
              <strong>{id}</strong>
              <span>{queue || texts.parked}</span>
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
