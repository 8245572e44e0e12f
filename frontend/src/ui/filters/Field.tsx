import { type KeyboardEvent, type RefObject, useEffect, useId, useState } from "react";
import { usePreferences } from "~/lib/preferences";
import * as texts from "~/texts/filters";
import { Icon } from "../icons";
import { type Filter, hintOf, keyOf, type Offer, offersFor } from "./filters";
import styles from "./filters.module.css";

export interface FieldProps {
  ref: RefObject<HTMLInputElement | null>;
  label: string;
  filters: readonly Filter[];
  /** The filter whose value is being typed. */
  chosen: Filter | undefined;
  onChoose(filter: Filter | undefined): void;
  onSet(filter: Filter, value: string | number): void;
  /** Backspace in the empty field. */
  onTakeBack(): void;
}

/** The field with its list: first a filter, then its value; or right away a value that one of them knows. */
export function Field({ ref, label, filters, chosen, onChoose, onSet, onTakeBack }: FieldProps) {
  const [typed, setTyped] = useState("");
  const [open, setOpen] = useState(false);
  const [marked, setMarked] = useState(0);
  const { zone } = usePreferences();
  const id = useId();
  const offers = open ? offersFor(filters, chosen, typed, zone) : [];
  const senseless = chosen !== undefined && typed !== "" && open && offers.length === 0;
  const at = Math.min(marked, offers.length - 1);

  function type(text: string) {
    setTyped(text);
    setMarked(0);
    setOpen(true);
  }
  function take(offer: Offer) {
    type("");
    if (offer.kind === "filter") onChoose(offer.filter);
    else {
      onSet(offer.filter, offer.value);
      setOpen(false);
    }
  }
  function leave() {
    setOpen(false);
    setTyped("");
    onChoose(undefined);
  }
  function onKeyDown(event: KeyboardEvent) {
    const offer = offers[at];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (!open) setOpen(true);
      else if (offers.length > 0) setMarked((at + step + offers.length) % offers.length);
    } else if (event.key === "Enter" && offer) take(offer);
    else if (event.key === "Escape" && (open || chosen || typed)) leave();
    else if (event.key === "Escape") ref.current?.blur();
    else if (event.key === "Backspace" && !typed && chosen) onChoose(undefined);
    else if (event.key === "Backspace" && !typed) onTakeBack();
    else return;
    event.preventDefault();
  }
  return (
    <div className={styles.field}>
      <Icon name="search" />
      {chosen && <span className={styles.chosen}>{chosen.label}</span>}
      <input
        ref={ref}
        className={styles.input}
        type="text"
        role="combobox"
        aria-label={chosen ? `${label}: ${chosen.label}` : label}
        aria-expanded={offers.length > 0}
        aria-invalid={senseless}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={offers[at] ? `${id}-${at}` : undefined}
        aria-describedby={chosen ? `${id}-hint` : undefined}
        autoComplete="off"
        spellCheck={false}
        placeholder={chosen ? "" : `${label} …`}
        value={typed}
        onChange={(event) => type(event.target.value)}
        onFocus={() => setOpen(true)}
        onClick={() => setOpen(true)}
        onBlur={leave}
        onKeyDown={onKeyDown}
      />
      {!chosen && <kbd className={styles.slash}>/</kbd>}
      <div className={styles.popup} hidden={!open}>
        <Offers
          id={id}
          label={label}
          offers={offers}
          at={at}
          chosen={chosen}
          onTake={take}
          onMark={setMarked}
        />
        {chosen && (
          <p className={styles.hint} id={`${id}-hint`}>
            {senseless && <strong className={styles.senseless}>{texts.invalid} </strong>}
            {hintOf(chosen)}
          </p>
        )}
      </div>
    </div>
  );
}

function Offers({
  id,
  label,
  offers,
  at,
  chosen,
  onTake,
  onMark,
}: {
  id: string;
  label: string;
  offers: readonly Offer[];
  at: number;
  chosen: Filter | undefined;
  onTake(offer: Offer): void;
  onMark(index: number): void;
}) {
  useEffect(() => {
    document.getElementById(`${id}-${at}`)?.scrollIntoView?.({ block: "nearest" });
  }, [id, at]);
  return (
    <div role="listbox" id={id} aria-label={label} className={styles.offers} hidden={offers.length === 0}>
      {offers.map((offer, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the field hears the keys
        <div
          key={keyOf(offer)}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === at}
          className={styles.offer}
          onPointerMove={() => index !== at && onMark(index)}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onTake(offer)}
        >
          <Words offer={offer} chosen={chosen !== undefined} />
        </div>
      ))}
    </div>
  );
}

function Words({ offer, chosen }: { offer: Offer; chosen: boolean }) {
  if (offer.kind === "filter") {
    return (
      <span>
        {offer.filter.label} <span className={styles.name}>…</span>
      </span>
    );
  }
  return (
    <>
      {!chosen && <span className={styles.name}>{offer.filter.label}</span>}{" "}
      <span className={styles.text}>{offer.text}</span>
    </>
  );
}
