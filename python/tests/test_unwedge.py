"""Tests of the installed wheel: python -m unittest discover python/tests. UNWEDGE_DEMO names the dump of `unwedge demo --save`."""

import gzip
import os
import tempfile
import threading
import unittest

import unwedge

DEMO = os.environ["UNWEDGE_DEMO"]


def capture():
    """A capture of two sections: a GPU, and a process."""
    section = lambda kind, payload: kind.to_bytes(4, "little") + len(payload).to_bytes(4, "little") + payload
    return section(13, (630).to_bytes(4, "little")) + section(2, b"game/1: fence=1\0")


class Dumps(unittest.TestCase):
    def setUp(self):
        self.dump = unwedge.open(DEMO)

    def test_the_verdict_is_a_dictionary(self):
        report = self.dump.explain()
        self.assertEqual(report["schema"], "unwedge.explain")
        self.assertEqual(report["signature"], self.dump.signature)
        self.assertTrue(self.dump.signature.startswith("adreno/a6xx/"))
        self.assertIn("rule", report["findings"][0])
        self.assertIn("CP_WAIT_REG_MEM", self.dump.explain_text())
        self.assertIn("CP_WAIT_REG_MEM", self.dump.around_hang())

    def test_events_are_those_of_decode(self):
        events = list(self.dump.events())
        self.assertEqual((events[0]["type"], events[-1]["type"]), ("header", "end"))
        packets = list(self.dump.events("packet"))
        self.assertTrue(packets and all(event["type"] == "packet" for event in packets))
        # An iterator that is dropped does not hold the program up.
        next(self.dump.events())

    def test_registers_by_name(self):
        registers = self.dump.registers()
        self.assertGreater(len(registers), 5)
        name, value = next(iter(registers.items()))
        self.assertEqual(self.dump.register(name), value)
        self.assertIsNone(self.dump.register("NO_SUCH_REGISTER"))
        # What a caller does with the values changes nothing.
        registers.clear()
        self.assertEqual(self.dump.register(name), value)

    def test_a_dump_is_decoded_once_for_its_registers(self):
        dump, decoded = unwedge.open(DEMO), []
        events = dump.events
        dump.events = lambda: decoded.append(1) or events()
        for _ in range(3):
            dump.register("NO_SUCH_REGISTER")
        dump.registers()
        self.assertEqual(len(decoded), 1)

    def test_bytes_and_compressed_files(self):
        with open(DEMO, "rb") as file:
            text = file.read()
        self.assertEqual(unwedge.open(text).signature, self.dump.signature)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dump.gz")
            with gzip.open(path, "wb") as file:
                file.write(text)
            self.assertEqual(unwedge.open(path).signature, self.dump.signature)
        self.assertEqual(self.dump.info()["kind"], self.dump.kind)

    def test_a_cut_dump_says_what_is_lost(self):
        with open(DEMO, "rb") as file:
            text = file.read()
        cut = unwedge.open(text[: len(text) // 2])
        self.assertTrue(cut.diagnostics)
        self.assertFalse(self.dump.diagnostics)

    def test_threads(self):
        found = []
        threads = [threading.Thread(target=lambda: found.append(unwedge.open(DEMO).signature)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [self.dump.signature] * 4)


class Others(unittest.TestCase):
    def test_captures_have_events(self):
        found = unwedge.open(capture())
        self.assertIsInstance(found, unwedge.Capture)
        self.assertEqual(found.kind, "rd-capture")
        self.assertEqual([event["type"] for event in found.events()][0], "header")

    def test_what_is_not_a_dump(self):
        for wrong in (b"", b"hello", b"\x1f\x8b\x08broken"):
            with self.assertRaises(unwedge.UnwedgeError):
                unwedge.open(wrong)
        with self.assertRaises(OSError):
            unwedge.open("/nonexistent")
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(unwedge.UnwedgeError):
            unwedge.open(folder)

    def test_machine_code(self):
        self.assertIn("end", unwedge.disassemble_ir3(bytes.fromhex("0000000000000003"), "a630"))
        self.assertEqual(unwedge.disassemble_amdgcn(bytes.fromhex("000081bf"), "gfx1030"), "s_endpgm\n")
        for wrong in (lambda: unwedge.disassemble_ir3(b"123", "a630"), lambda: unwedge.disassemble_amdgcn(b"", "gfx0")):
            with self.assertRaises(unwedge.UnwedgeError):
                wrong()
        self.assertIsInstance(unwedge.disassemble_afuc(bytes(64)), str)

    def test_lookups(self):
        answers = unwedge.lookup("a630", "RB_MRT[0].CONTROL")
        self.assertEqual(answers[0]["schema"], "unwedge.regs")
        self.assertTrue(any("RB_MRT" in str(answer) for answer in answers[1:]))
        with self.assertRaises(unwedge.UnwedgeError):
            unwedge.lookup("no-gpu", "X")


if __name__ == "__main__":
    unittest.main()
