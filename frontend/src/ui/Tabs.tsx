import { Tabs as BaseTabs } from "@base-ui/react/tabs";
import type { ReactNode } from "react";
import styles from "./Tabs.module.css";

export interface Tab<T extends string> {
  value: T;
  label: ReactNode;
  /** The count next to the label. */
  count?: string | undefined;
}

/** Tabs. `children` is the content of the selected one. */
export function Tabs<T extends string>({
  label,
  tabs,
  value,
  onChoose,
  children,
}: {
  label: string;
  tabs: readonly Tab<T>[];
  value: T;
  onChoose(value: T): void;
  children: ReactNode;
}) {
  return (
    <BaseTabs.Root value={value} onValueChange={(chosen) => onChoose(chosen as T)}>
      <BaseTabs.List className={styles.list ?? ""} aria-label={label}>
        {tabs.map((tab) => (
          <BaseTabs.Tab key={tab.value} value={tab.value} className={styles.tab ?? ""}>
            {tab.label}
            {tab.count !== undefined && <span className={styles.count}>{tab.count}</span>}
          </BaseTabs.Tab>
        ))}
      </BaseTabs.List>
      {tabs.map((tab) => (
        <BaseTabs.Panel key={tab.value} value={tab.value} className={styles.panel ?? ""}>
          {tab.value === value && children}
        </BaseTabs.Panel>
      ))}
    </BaseTabs.Root>
  );
}
