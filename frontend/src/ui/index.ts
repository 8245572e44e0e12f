// Components shared by pages.

export { AsOf, useLiveStatus } from "./AsOf";
export { announce } from "./announce";
export { Announcements } from "./announcements";
export { Badge, EnvironmentBadge, type Tone } from "./Badge";
export { Button, type ButtonProps, IconButton } from "./Button";
export { CopyButton, copy } from "./Copy";
export { Dialog, DialogClose, type DialogProps } from "./Dialog";
export { Facts } from "./Facts";
export { Checkbox, Choice, Switch, TextArea, TextField } from "./fields";
export { Hint } from "./Hint";
export { Icon, type IconName } from "./icons";
export { Empty, Loaded, Loading } from "./Loaded";
export { OutboxSwitch } from "./OutboxSwitch";
export { Page } from "./Page";
export { Pager } from "./Pager";
export { Panel } from "./Panel";
export { Problem } from "./Problem";
export { SidePanel } from "./SidePanel";
export { State } from "./State";
export { stateStyle } from "./states";
export { Table } from "./Table";
export { type Tab, Tabs } from "./Tabs";
export { Ago, Moment, Span } from "./Time";
