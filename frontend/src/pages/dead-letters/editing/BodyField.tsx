import { readJsonOr } from "~/lib/json";
import { writeJson, wrongIn } from "~/lib/json-text";
import { announce, Button, Choice } from "~/ui";
import { CodeField } from "./CodeField";
import { type Draft, type Form, inForm, wrongBody } from "./draft";
import styles from "./Editor.module.css";

const FORMS: readonly (readonly [Form, string])[] = [
  ["json", "JSON, checked while you type"],
  ["text", "Text, sent as it is"],
  ["base64", "Bytes, in base64"],
];

const HINTS: Record<Form, string> = {
  json: "This is valid JSON. Numbers stay exactly as you write them.",
  text: "It is sent as it is, in UTF-8, whether or not it is what the consumer expects.",
  base64: "The bytes in base64; line breaks in it do not count.",
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
    if (body === undefined) announce("These bytes are no text: they stay as base64.", "bad");
    else onEdit({ form, body });
  }
  const tree = draft.form === "json" ? readJsonOr(draft.body) : undefined;
  return (
    <div>
      <div className={styles.tools}>
        <Choice<Form> label="The body is" value={draft.form} onChoose={choose} options={FORMS} />
        <span className="quiet">{contentType ?? "no content type"}</span>
        {draft.form === "json" && (
          <Button
            whyNot={tree ? undefined : "It has to be valid JSON first."}
            onClick={() => tree && onEdit({ body: writeJson(tree, 2) })}
          >
            Tidy up
          </Button>
        )}
      </div>
      <CodeField
        label="Body"
        value={draft.body}
        onChange={(body) => onEdit({ body })}
        error={wrongBody(draft)}
        wrongLine={draft.form === "json" ? wrongIn(draft.body)?.line : undefined}
        hint={HINTS[draft.form]}
      />
    </div>
  );
}
