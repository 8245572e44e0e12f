import { describe, expect, it } from "vitest";
import { folded, mostRelevantFrame, partsOf } from "./traceback";

const TEXT = `Traceback (most recent call last):
  File "/srv/app/.venv/lib/python3.11/site-packages/outbox/engine/attempting.py", line 93, in _outcome
    await self._call(run, body)
  File "/srv/app/orders/payment.py", line 24, in capture
    charge(order["total"])
           ~~~~~^^^^^^^^^
  File "/srv/app/orders/charging.py", line 7, in charge
    client.post(total)
  File "/srv/app/.venv/lib/python3.11/site-packages/httpx/client.py", line 9, in post
    raise ConnectionError()
ConnectionError: the provider
does not answer
`;

describe("a traceback", () => {
  it("shows the application's deepest frame and folds the others", () => {
    const shown = folded(partsOf(TEXT));
    expect(shown.map(({ kind }) => kind)).toEqual(["words", "fold", "frame", "fold", "words"]);
    expect(shown[2]).toMatchObject({
      path: "/srv/app/orders/charging.py",
      line: "7",
      name: "charge",
      own: true,
    });
    expect(shown.at(-1)).toEqual({ kind: "words", text: "ConnectionError: the provider\ndoes not answer" });
  });

  it("keeps code and markers with their frame", () => {
    const [, , frame] = partsOf(TEXT);
    expect(frame).toMatchObject({ code: ['charge(order["total"])', "       ~~~~~^^^^^^^^^"] });
  });

  it("shows the application's frame of the last exception, or else the deepest frame", () => {
    const chained = `${TEXT}\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File "/srv/app/main.py", line 1, in run\n    raise ValueError\nValueError\n`;
    expect(mostRelevantFrame(partsOf(chained))?.path).toBe("/srv/app/main.py");
    const foreign = '  File "/usr/lib/python3.11/json/decoder.py", line 3, in decode\nValueError\n';
    expect(mostRelevantFrame(partsOf(foreign))?.name).toBe("decode");
    expect(mostRelevantFrame(partsOf("no traceback at all"))).toBeUndefined();
  });
});
