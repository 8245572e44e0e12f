// Texts of charts.

export const time = "Time";
export const chartLabel = (label: string) =>
  `${label}. Use the arrow keys to move through time, hold Shift to select, press Enter to zoom.`;
export const asTable = (label: string) => `${label}, as a table`;
export const incomplete = " (incomplete)";
export const noData = "No data";
export const begins = " · no data before";
export const dashed = "Dashed: current interval, still filling.";
export const hideTable = "Hide table";
export const showTable = "Show table";
export const charts = "Charts";
export const history = "History";
export const zoomOut = "Zoom out";
export const showLast = (range: string) => `Show the last ${range}`;
export const widest = "This is the longest range.";
export const timeRange = "Time range of the charts";
export const messagesAxis = "messages";
export const timeAxis = (zone: "utc" | "local") => (zone === "utc" ? "time, UTC" : "local time");
export const notKnown = "no data";
export const range15Minutes = "15 min";
export const range1Hour = "1 h";
export const range6Hours = "6 h";
export const range24Hours = "24 h";
export const range7Days = "7 d";
export const range30Days = "30 d";
