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
  /** Called on Backspace in the empty field. */
  onRemoveLast(): void;
}

/** The input with its list of suggestions: first a filter, then its value, or directly a known value. */
export function Field({ ref, label, filters, chosen, onChoose, onSet, onRemoveLast }: FieldProps) {
  const [typed, setTyped] = useState("");
  const [open, setOpen] = useState(false);
  const [highlighted, setHighlighted] = useState(0);
  const { zone } = usePreferences();
  const id = useId();
  const offers = open ? offersFor(filters, chosen, typed, zone) : [];
  const isInvalid = chosen !== undefined && typed !== "" && open && offers.length === 0;
  const active = Math.min(highlighted, offers.length - 1);

  function updateText(text: string) {
    setTyped(text);
    setHighlighted(0);
    setOpen(true);
  }
  function accept(offer: Offer) {
    updateText("");
    if (offer.kind === "filter") onChoose(offer.filter);
    else {
      onSet(offer.filter, offer.value);
      setOpen(false);
    }
  }
  function reset() {
    setOpen(false);
    setTyped("");
    onChoose(undefined);
  }
  function onKeyDown(event: KeyboardEvent) {
    const offer = offers[active];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (!open) setOpen(true);
      else if (offers.length > 0) setHighlighted((active + step + offers.length) % offers.length);
    } else if (event.key === "Enter" && offer) accept(offer);
    else if (event.key === "Escape" && (open || chosen || typed)) reset();
    else if (event.key === "Escape") ref.current?.blur();
    else if (event.key === "Backspace" && !typed && chosen) onChoose(undefined);
    else if (event.key === "Backspace" && !typed) onRemoveLast();
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
        aria-invalid={isInvalid}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={offers[active] ? `${id}-${active}` : undefined}
        aria-describedby={chosen ? `${id}-hint` : undefined}
        autoComplete="off"
        spellCheck={false}
        placeholder={chosen ? "" : `${label} …`}
        value={typed}
        onChange={(event) => updateText(event.target.value)}
        onFocus={() => setOpen(true)}
        onClick={() => setOpen(true)}
        onBlur={reset}
        onKeyDown={onKeyDown}
      />
      {!chosen && <kbd className={styles.slash}>/</kbd>}
      <div className={styles.popup} hidden={!open}>
        <Offers
          id={id}
          label={label}
          offers={offers}
          active={active}
          chosen={chosen}
          onAccept={accept}
          onHighlight={setHighlighted}
        />
        {chosen && (
          <p className={styles.hint} id={`${id}-hint`}>
            {isInvalid && <strong className={styles.invalid}>{texts.invalid} </strong>}
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
  active,
  chosen,
  onAccept,
  onHighlight,
}: {
  id: string;
  label: string;
  offers: readonly Offer[];
  active: number;
  chosen: Filter | undefined;
  onAccept(offer: Offer): void;
  onHighlight(index: number): void;
}) {
  useEffect(() => {
    document.getElementById(`${id}-${active}`)?.scrollIntoView?.({ block: "nearest" });
  }, [id, active]);
  return (
    <div
      role="listbox"
      id={id}
      aria-label={label}
      className={styles.offers}
      hidden={offers.length === 0}
      tabIndex={-1} // a list that scrolls takes focus otherwise, and loses it as it closes
    >
      {offers.map((offer, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the field handles the keys
        <div
          key={keyOf(offer)}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === active}
          className={styles.offer}
          onPointerMove={() => index !== active && onHighlight(index)}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onAccept(offer)}
        >
          <OfferLabel offer={offer} chosen={chosen !== undefined} />
        </div>
      ))}
    </div>
  );
}

function OfferLabel({ offer, chosen }: { offer: Offer; chosen: boolean }) {
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
