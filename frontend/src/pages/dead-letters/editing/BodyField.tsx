import { findJsonProblem, tryReadJson, writeJson } from "~/lib/json";
import * as texts from "~/texts/editing";
import { announce, Button, Choice } from "~/ui";
import { CodeField } from "./CodeField";
import { type Draft, type Form, inForm, wrongBody } from "./draft";
import styles from "./Editor.module.css";

const FORMS: readonly (readonly [Form, string])[] = [
  ["json", texts.json],
  ["text", texts.text],
  ["base64", texts.base64],
];

const HINTS: Record<Form, string> = {
  json: texts.jsonHint,
  text: texts.textHint,
  base64: texts.base64Hint,
};

export function BodyField({
  draft,
  contentType,
  onEdit,
}: {
  draft: Draft;
  contentType: string | null;
  onEdit(changes: Partial<Draft>): void;
}) {
  function choose(form: Form) {
    const body = inForm(draft, form);
    if (body === undefined) announce(texts.staysBase64, "bad");
    else onEdit({ form, body });
  }
  const tree = draft.form === "json" ? tryReadJson(draft.body) : undefined;
  return (
    <div>
      <div className={styles.tools}>
        <Choice<Form> label={texts.format} value={draft.form} onChoose={choose} options={FORMS} />
        <span className="quiet">{contentType ?? texts.noContentType}</span>
        {draft.form === "json" && (
          <Button
            whyNot={tree ? undefined : texts.validJsonFirst}
            onClick={() => tree && onEdit({ body: writeJson(tree, 2) })}
          >
            {texts.tidy}
          </Button>
        )}
      </div>
      <CodeField
        label={texts.body}
        value={draft.body}
        onChange={(body) => onEdit({ body })}
        json={draft.form === "json"}
        error={wrongBody(draft)}
        wrongLine={draft.form === "json" ? findJsonProblem(draft.body)?.line : undefined}
        hint={HINTS[draft.form]}
      />
    </div>
  );
}
