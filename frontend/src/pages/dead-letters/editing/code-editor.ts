// CodeMirror as the dashboard uses it.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import {
  bracketMatching,
  codeFolding,
  foldGutter,
  foldKeymap,
  syntaxHighlighting,
} from "@codemirror/language";
import { search, searchKeymap } from "@codemirror/search";
import {
  Compartment,
  type EditorState,
  type Extension,
  RangeSet,
  type RangeValue,
  Transaction,
} from "@codemirror/state";
import {
  Decoration,
  EditorView,
  GutterMarker,
  gutterLineClass,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import looks from "./code-editor.css?inline";

export interface CodeEditor {
  focus(): void;
  /** Replaces the text where it differs from what was typed; undo takes it back. */
  write(text: string): void;
  configure(settings: Settings): void;
  destroy(): void;
}

export interface Settings {
  label: string;
  json: boolean;
  /** What is wrong, or a hint, for those who do not see it. */
  about: string;
  invalid: boolean;
  wrongLine: number | undefined;
}

/** Puts an editor into an element. `onChange` hears of what the user changes, not of what is written. */
export function codeEditor(host: HTMLElement, text: string, onChange: (text: string) => void): CodeEditor {
  // In a shadow root CodeMirror adopts its style sheets. In the document it would write a style element, which the policy
  // of the page forbids.
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open", delegatesFocus: true });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(looks);
  root.adoptedStyleSheets = [sheet];
  const settings = new Compartment();
  let known = text;
  const view = new EditorView({
    parent: root,
    root,
    doc: text,
    extensions: [
      lineNumbers(),
      history(),
      bracketMatching(),
      // Characters that turn the direction of writing are seen.
      highlightSpecialChars(),
      search({ top: true }),
      // Escape closes the search and leaves the dialog open.
      keymap.of(searchKeymap.map((binding) => ({ ...binding, stopPropagation: true }))),
      keymap.of([...defaultKeymap, ...historyKeymap, ...foldKeymap]),
      syntaxHighlighting(classHighlighter),
      settings.of([]),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged || update.transactions.some((one) => one.annotation(Transaction.remote)))
          return;
        known = update.state.doc.toString();
        onChange(known);
      }),
    ],
  });
  return {
    focus: () => view.focus(),
    write(wanted) {
      if (wanted === known) return;
      known = wanted;
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: wanted },
        annotations: Transaction.remote.of(true),
      });
    },
    configure: (wanted) => view.dispatch({ effects: settings.reconfigure(extensionsOf(wanted)) }),
    destroy: () => view.destroy(),
  };
}

function extensionsOf({ label, json: isJson, about, invalid, wrongLine }: Settings): Extension {
  const contentAttributes = {
    "aria-label": label,
    "aria-description": about,
    "aria-invalid": String(invalid),
    spellcheck: "false",
  };
  const extensions: Extension[] = [EditorView.contentAttributes.of(contentAttributes)];
  if (isJson) extensions.push(json(), codeFolding(), foldGutter(FOLD_SIGNS));
  if (wrongLine !== undefined) {
    extensions.push(gutterLineClass.compute(["doc"], (state) => onLine(state, wrongLine, WRONG_NUMBER)));
    extensions.push(EditorView.decorations.compute(["doc"], (state) => onLine(state, wrongLine, WRONG_LINE)));
  }
  return extensions;
}

/** A mark on a line; on none where the text has become shorter meanwhile. */
function onLine<T extends RangeValue>({ doc }: EditorState, line: number, mark: T): RangeSet<T> {
  return line <= doc.lines ? RangeSet.of<T>(mark.range(doc.line(line).from)) : RangeSet.empty;
}

const FOLD_SIGNS = { openText: "▾", closedText: "▸" };
const WRONG_LINE = Decoration.line({ class: "wrong" });
const WRONG_NUMBER = new (class extends GutterMarker {
  override elementClass = "wrong";
})();
