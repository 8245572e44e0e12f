// The dashboard's CodeMirror setup.

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
  /** Replaces the text if it differs. Undo reverts the replacement. */
  write(text: string): void;
  configure(settings: Settings): void;
  destroy(): void;
}

export interface Settings {
  label: string;
  json: boolean;
  /** The error or hint, for screen readers. */
  about: string;
  invalid: boolean;
  wrongLine: number | undefined;
}

/** Creates an editor in an element. `onChange` is called for changes by the user, not for calls of `write`. */
export function codeEditor(host: HTMLElement, text: string, onChange: (text: string) => void): CodeEditor {
  // In a shadow root, CodeMirror uses adopted style sheets. In the document it would add a style element, which the
  // content security policy forbids.
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
      // Makes invisible and bidirectional control characters visible.
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

/** Marks a line, unless the text has become shorter than that. */
function onLine<T extends RangeValue>({ doc }: EditorState, line: number, mark: T): RangeSet<T> {
  return line <= doc.lines ? RangeSet.of<T>(mark.range(doc.line(line).from)) : RangeSet.empty;
}

const FOLD_SIGNS = { openText: "▾", closedText: "▸" };
const WRONG_LINE = Decoration.line({ class: "wrong" });
const WRONG_NUMBER = new (class extends GutterMarker {
  override elementClass = "wrong";
})();
