//! Drafts as the files of a record.

use super::Draft;
use narrows_record::{
    BinLog, Cell, Entered, Fate, PacketFile, PacketLog, PacketRow, Record, RowFile, RunDocument,
};

impl Draft {
    /// Feeds the rows through the log that drivers use, in an order of events.
    pub fn packets(&self) -> Vec<u8> {
        let names: Vec<String> = self.run.elements.iter().map(|e| e.name.clone()).collect();
        let mut log = PacketLog::new(names.clone());
        let mut file = PacketFile::create(Vec::new()).unwrap();
        for row in &self.rows {
            let uid = log.enter(row.flow, row.direction, row.size_bytes, row.sent_ns);
            assert_eq!(
                uid, row.uid,
                "use `packets_as_is` for rows without proper uids"
            );
        }
        for row in &self.rows {
            let element = row.element.as_ref().map(|name| {
                names
                    .iter()
                    .position(|n| n == name)
                    .expect("a known element") as u16
            });
            match row.fate {
                Fate::Delivered => {
                    log.arrive(row.uid, row.arrived_ns.unwrap(), row.late_ns.unwrap());
                }
                Fate::Dropped => {
                    let reason = match row.reason.as_deref() {
                        Some("random_loss") => "random_loss",
                        _ => "queue_full",
                    };
                    log.drop(row.uid, element.unwrap(), reason);
                }
                Fate::InFlight => log.hold(row.uid, element.unwrap()),
            }
        }
        log.finish();
        file.drain(&mut log).unwrap();
        file.finish().unwrap()
    }

    /// Encodes the rows without changes, even if they are invalid.
    pub fn packets_as_is(&self) -> Vec<u8> {
        let mut chunk = narrows_record::Chunk::default();
        self.rows.iter().for_each(|row| chunk.push(row));
        let mut file = PacketFile::create(Vec::new()).unwrap();
        file.write(&chunk).unwrap();
        file.finish().unwrap()
    }

    pub fn states(&self) -> Vec<u8> {
        let mut file = RowFile::create(Vec::new()).unwrap();
        self.states
            .iter()
            .for_each(|row| file.push(row.clone()).unwrap());
        file.finish().unwrap()
    }

    pub fn queues(&self) -> Vec<u8> {
        let mut file = RowFile::create(Vec::new()).unwrap();
        self.queues
            .iter()
            .for_each(|row| file.push(row.clone()).unwrap());
        file.finish().unwrap()
    }

    pub fn transfers(&self) -> Vec<u8> {
        let mut file = RowFile::create(Vec::new()).unwrap();
        self.transfers
            .iter()
            .for_each(|row| file.push(row.clone()).unwrap());
        file.finish().unwrap()
    }

    pub fn frames(&self) -> Vec<u8> {
        let mut file = RowFile::create(Vec::new()).unwrap();
        self.frames.iter().for_each(|row| file.push(*row).unwrap());
        file.finish().unwrap()
    }

    pub fn traces(&self) -> Vec<u8> {
        let mut file = RowFile::create(Vec::new()).unwrap();
        self.traces
            .iter()
            .for_each(|row| file.push(row.clone()).unwrap());
        file.finish().unwrap()
    }

    /// The record as a reader sees it.
    pub fn record(&self) -> Record {
        Record {
            run: RunDocument::parse(self.run.to_text().as_bytes()).unwrap(),
            cell: Cell::parse(&self.run.cell).unwrap(),
            packets: Some(self.packets_as_is().into()),
            bins: None,
            delays: None,
            states: Some(self.states().into()),
            queues: Some(self.queues().into()),
            traces: (!self.traces.is_empty()).then(|| self.traces().into()),
            transfers: Some(self.transfers().into()),
            completions: None,
            frames: Some(self.frames().into()),
            capacity: None,
        }
    }

    /// The same run, kept as bins.
    pub fn record_of_bins(&self, bin_ns: u64) -> Record {
        let cell = Cell::parse(&self.run.cell).unwrap();
        let mut log = BinLog::new(bin_ns).measuring(cell.measure);
        let mut enter =
            |row: &PacketRow| log.enter(row.flow, row.direction, row.size_bytes, row.sent_ns);
        let entered: Vec<Entered> = self.rows.iter().map(&mut enter).collect();
        for (row, packet) in self.rows.iter().zip(entered) {
            match row.fate {
                Fate::Delivered => log.arrive(packet, row.arrived_ns.unwrap()),
                Fate::Dropped => log.drop(packet),
                Fate::InFlight => {}
            }
        }
        let mut bins = RowFile::create(Vec::new()).unwrap();
        log.bins().for_each(|row| bins.push(row).unwrap());
        let mut delays = RowFile::create(Vec::new()).unwrap();
        log.delays().for_each(|row| delays.push(row).unwrap());
        Record {
            packets: None,
            bins: Some(bins.finish().unwrap().into()),
            delays: Some(delays.finish().unwrap().into()),
            ..self.record()
        }
    }
}
